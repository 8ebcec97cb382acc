"""The sampled chain of FCFS against a loop over steps and slots that draws the same numbers: equal at every step."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import fcfs_chain as naive

from lbopt.exceptions import InputError
from lbopt.kernels.sampling.fcfs_chain import Draws, slot_ages
from lbopt.theory.chains import fcfs_chain
from lbopt.theory.chains.batch_means import batch_steps, slot_streams
from lbopt.theory.chains.fcfs_chain import fcfs_imbalances, mean_fcfs_imbalance, steps_for
from lbopt.theory.laws.slot_law import Growth, PromptLaw

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # meant, where not compiled

GROWTHS = ("0", "1", "1/2", "3", "0+1+3", "1/2+1/3")
CHUNK = fcfs_chain._CHUNK


def both(
    G: int, B: int, p: float, law: PromptLaw, steps: int, seed: int, growth: Growth
) -> tuple[list[Fraction], list[Fraction]]:
    """Imbalances of the kernel and of the loop, in whole numbers of 1/unit tokens."""
    chunks = list(fcfs_imbalances(G, B, p, law, steps, seed, growth))
    found = [Fraction(round(one * growth.unit), growth.unit) for one in np.concatenate(chunks)]
    table = [column.tolist() for column in law.aliases()]
    return found, naive.imbalances(slot_streams(seed, G, B).tolist(), p, table, growth.cycle, steps)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_every_step_whatever_the_chunks(growth: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcfs_chain, "_CHUNK", chunk)
    found, wanted = both(3, 4, 0.15, PromptLaw((1, 4, 9), (3, 2, 1)), 150, 5, Growth.parse(growth))
    assert found == wanted


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([1.0, 0.9, 0.5, 0.1, 0.01]),
    st.sampled_from(GROWTHS),
    st.integers(1, 40),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_every_step_of_any_fleet(G: int, B: int, p: float, growth: str, steps: int, seed: int) -> None:
    found, wanted = both(G, B, p, PromptLaw.uniform(5), steps, seed, Growth.parse(growth))
    assert found == wanted


@pytest.mark.jit
def test_every_step_across_a_whole_chunk() -> None:
    found, wanted = both(2, 1, 0.3, PromptLaw.uniform(6), CHUNK + 300, 2, Growth.parse("0+1+3"))
    assert found == wanted


@pytest.mark.parametrize(("steps", "sizes"), [(1, [1]), (CHUNK, [CHUNK]), (CHUNK + 1, [CHUNK, 1])])
def test_chunks_hold_all_steps(steps: int, sizes: list[int]) -> None:
    assert [chunk.size for chunk in fcfs_imbalances(2, 1, 0.01, PromptLaw.uniform(2), steps, 0)] == sizes


@given(st.sampled_from([1.0, 0.6, 0.1, 0.01]), st.integers(0, 200), st.integers(0, 2**31))
@settings(max_examples=40)
def test_ages_and_prompts_of_a_step(p: float, step: int, seed: int) -> None:
    law, count = PromptLaw.uniform(7), 5
    streams, table = slot_streams(seed, count), law.aliases()
    age, came = np.empty(count, np.int64), np.empty(count, np.int64)
    slot_ages(streams, Draws(math.log1p(-p) if p < 1 else -math.inf, *table), step, age, came)
    slots = [naive.Slot(int(start), p, [column.tolist() for column in table]) for start in streams]
    for slot in slots:
        for _ in range(step):
            slot.step(Fraction(1))
    assert age.tolist() == [slot.age for slot in slots]
    assert came.tolist() == [slot.prompt for slot in slots]


def test_growth_that_all_share_moves_no_imbalance_of_equal_ages() -> None:
    """With p = 1 every request is new, so no growth counts: two growths give one imbalance."""
    law = PromptLaw.uniform(9)
    first, second = (
        np.concatenate(list(fcfs_imbalances(3, 2, 1.0, law, 50, 4, Growth.parse(text)))) for text in ("0", "3")
    )
    assert np.array_equal(first, second)


@pytest.mark.parametrize("growth", ["1", "0+1+3", "1+0+0+0+0+0+2"])
def test_batches_hold_whole_cycles(growth: str) -> None:
    p, gained = 0.4, Growth.parse(growth)
    found = mean_fcfs_imbalance(2, 2, p, PromptLaw.uniform(3), 10, 0, gained)
    length, left = divmod(found.trials, found.dof + 1)
    assert left == 0
    assert length % len(gained.cycle) == 0
    assert batch_steps(p) <= length < batch_steps(p) + len(gained.cycle)
    assert found.dof == 19


@pytest.mark.jit
@pytest.mark.parametrize(("G", "p"), [(2, 0.2), (16, 0.2), (64, 0.05)])
def test_steps_give_about_the_accuracy(G: int, p: float) -> None:
    found = mean_fcfs_imbalance(G, 32, p, PromptLaw.uniform(8), steps_for(G, p, 0.01), 3)
    assert 0.5 < found.error / found.mean / 0.01 < 1.5


def test_a_chain_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"G = 1000000 workers with B = 1000000 slots needs .* GiB"):
        next(fcfs_imbalances(10**6, 10**6, 0.2, PromptLaw.uniform(2), 10, 0))
