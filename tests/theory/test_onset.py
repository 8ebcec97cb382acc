"""B* and the law of the drifting leader: by hand, against the note's table, and against the chain itself."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.theory.chains.replete import Replete
from lbopt.theory.laws.gap_bounds import CLEAR, onset, outside_onset
from lbopt.theory.laws.leader_walk import levelled_imbalance, levelled_range, step_noise
from lbopt.theory.laws.normal_maximum import expected_maximum
from lbopt.theory.laws.slot_law import PromptLaw


@pytest.mark.parametrize(("p", "noted"), [(0.5, 53), (0.2, 280), (0.1, 1.4e3), (0.02, 1.1e5)])
def test_the_notes_table(p: float, noted: float) -> None:
    """G = 8 and prompts uniform to 10, to the digits that are printed."""
    assert onset(8, p, PromptLaw.uniform(10)) == pytest.approx(noted, rel=0.04)


@pytest.mark.parametrize("growth", [0.0, 1.0, 3.0])
def test_second_moment_by_summation(growth: float) -> None:
    p, law = 0.25, PromptLaw((1, 5), (3, 1))
    ages = np.arange(400)
    square = sum(
        float(share) * np.sum(p * (1 - p) ** ages * (length + growth * (ages + 1)) ** 2)
        for length, share in zip(law.lengths, law.shares, strict=True)
    )
    assert onset(4, p, law, growth) == pytest.approx(16 * expected_maximum(4) ** 2 * square / (p * 4**2))


def test_for_long_outputs_it_is_the_short_form() -> None:
    p, s_max = 1e-4, 1000
    short = 32 * expected_maximum(16) ** 2 / (p**3 * s_max**2)
    assert onset(16, p, PromptLaw.uniform(s_max)) == pytest.approx(short, rel=0.15)


def test_outside_is_said_in_words() -> None:
    law = PromptLaw.uniform(10)
    begins = CLEAR * onset(8, 0.5, law)
    assert outside_onset(8, int(begins) + 1, 0.5, law) == ""
    assert outside_onset(8, 100, 0.5, law) == f"B = 100 is below 4 B* = {begins:,.0f}"


def test_leader_drift_by_hand() -> None:
    ages = np.arange(4000)
    assert step_noise(0.1) == pytest.approx(np.sum(0.1 * 0.9**ages * (ages + 1) ** 2))
    assert levelled_imbalance(2, 0.1, 10) == pytest.approx(2 * 190 / 18)
    low, high = levelled_range(8, 0.02, 10)
    assert low == pytest.approx(64 * 4950 / 81)
    assert high == pytest.approx(4950 / 81 / 0.02)


@pytest.mark.more
@pytest.mark.jit
def test_the_chain_follows_the_leader() -> None:
    """Well inside its range the law is right to a quarter (it errs by 10 to 20 %), and B hardly moves the imbalance."""
    G, p, s_max = 2, 0.005, 10
    low, high = levelled_range(G, p, s_max)
    law, shares = levelled_imbalance(G, p, s_max), []
    for B in (8_000, 16_000):
        assert 2 * low < B < high / 10
        run = Replete(G, B, p, PromptLaw.uniform(s_max)).run(40_000, 3)
        shares.append(run.steps.imbalance.mean() / law)
    assert shares == pytest.approx([1, 1], rel=0.25)
    assert shares[0] / shares[1] == pytest.approx(1, abs=0.2)  # under FCFS it would be the root of 2
