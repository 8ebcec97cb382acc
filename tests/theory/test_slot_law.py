"""The law of a slot: against its definition step by step, closed moments, and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import (
    Growth,
    PromptLaw,
    SlotLaw,
    age_mean,
    age_third_moment,
    age_variance,
    prompt_slot_law,
    slot_law,
    slot_law_at,
    slot_law_seen,
    snapshot_variance,
)

PROBABILITIES = st.floats(0.01, 1.0)
GROWTHS = st.lists(st.fractions(0, 4, max_denominator=4), min_size=1, max_size=4)
LAWS = st.sampled_from(
    [PromptLaw.uniform(1), PromptLaw.uniform(8), PromptLaw.two_sizes(30), PromptLaw((2, 3, 11), (5, 1, 2))]
)


def stepwise(law: PromptLaw, p: Fraction, growth: Growth, steps: int) -> dict[Fraction, Fraction]:
    """The law of a slot filled in step 0, by the recursion (25) itself: grow, end with p, take a fresh prompt."""
    prompts = dict(zip(map(Fraction, law.lengths), law.shares, strict=True))
    now = dict(prompts)
    for k in range(1, steps + 1):
        gained = growth.cycle[k % len(growth.cycle)]
        after: dict[Fraction, Fraction] = {}
        for size, share in now.items():
            after[size + gained] = after.get(size + gained, Fraction(0)) + (1 - p) * share
        for size, share in prompts.items():
            after[size] = after.get(size, Fraction(0)) + p * share
        now = after
    return now


@pytest.mark.parametrize("cycle", ["0", "1", "1/2", "3", "0+1+3", "1/2+2/3"])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 12])
def test_law_in_a_step_is_the_recursions(cycle: str, steps: int) -> None:
    growth, law, p = Growth.parse(cycle), PromptLaw((1, 4), (2, 1)), Fraction(3, 8)
    exact = stepwise(law, p, growth, steps)
    found = slot_law_at(law, float(p), growth, steps)
    sizes = {Fraction(int(i), found.unit): found.probabilities[i] for i in np.flatnonzero(found.probabilities)}
    assert set(sizes) == set(exact)
    for size, share in exact.items():
        assert sizes[size] == pytest.approx(float(share), rel=1e-14)


@pytest.mark.parametrize("cycle", ["1", "1/2", "0+1+3"])
def test_stationary_law_is_left_alone_by_a_step(cycle: str) -> None:
    """After one more step, seen one phase later, the law is the stationary one of that phase."""
    growth, law, p = Growth.parse(cycle), PromptLaw.uniform(3), 0.3
    for phase in range(len(growth.cycle)):
        before = slot_law_seen(law, p, growth.latest(phase))
        after = slot_law_seen(law, p, growth.latest(phase + 1))
        gained = growth.cycle[(phase + 1) % len(growth.cycle)]
        prompts = np.zeros(after.probabilities.size)
        prompts[np.array(law.lengths) * after.unit] = [float(share) for share in law.shares]
        grown = np.zeros(after.probabilities.size)
        shift = int(gained * before.unit)
        kept = before.probabilities[: grown.size - shift]
        grown[shift : shift + kept.size] = kept
        assert np.abs((1 - p) * grown + p * prompts - after.probabilities).max() < 1e-16


@given(LAWS, PROBABILITIES, st.fractions(0, 4, max_denominator=4))
def test_moments_are_the_closed_ones(law: PromptLaw, p: float, growth: Fraction) -> None:
    found = slot_law(law, p, growth)
    rate = float(growth)
    assert found.probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert (found.probabilities >= 0).all()
    assert found.mean == pytest.approx(float(law.mean) + rate * age_mean(p), rel=1e-11)
    assert found.variance == pytest.approx(snapshot_variance(law, p, rate), rel=1e-10, abs=1e-12)
    if found.variance > 1e-6:
        third = float(law.third_moment) + rate**3 * age_third_moment(p)
        assert found.skewness == pytest.approx(third / found.variance**1.5, rel=1e-8, abs=1e-9)
        assert found.third_absolute_moment >= abs(third) * (1 - 1e-9)
        assert found.third_absolute_moment >= found.variance**1.5 * (1 - 1e-9)  # Jensen


@given(LAWS, PROBABILITIES, GROWTHS)
def test_any_cycle_has_the_mean_of_its_phases(law: PromptLaw, p: float, cycle: list[Fraction]) -> None:
    """Averaged over phases, a slot has grown by the mean growth in each step of its age."""
    growth = Growth(tuple(cycle))
    means = [slot_law_seen(law, p, growth.latest(phase)).mean for phase in range(len(cycle))]
    expected = float(law.mean) + float(sum(cycle)) / len(cycle) * age_mean(p)
    assert np.mean(means) == pytest.approx(expected, rel=1e-11)


@given(LAWS, PROBABILITIES, GROWTHS, st.integers(0, 12))
def test_a_start_is_forgotten(law: PromptLaw, p: float, cycle: list[Fraction], phase: int) -> None:
    growth = Growth(tuple(cycle))
    late = len(cycle) * math.ceil(45 / p / len(cycle)) + phase % len(cycle)
    seen = slot_law_seen(law, p, growth.latest(phase % len(cycle)))
    at = slot_law_at(law, p, growth, late)
    size = max(seen.probabilities.size, at.probabilities.size)
    gap = np.pad(seen.probabilities, (0, size - seen.probabilities.size))
    gap -= np.pad(at.probabilities, (0, size - at.probabilities.size))
    assert np.abs(gap).sum() < 1e-12


@pytest.mark.parametrize("p", [0.5, 0.125, 0.03])
def test_age_moments_are_sums(p: float) -> None:
    ages = np.arange(4000)
    share = p * (1 - p) ** ages
    mean = share @ ages
    assert age_mean(p) == pytest.approx(mean, rel=1e-12)
    assert age_variance(p) == pytest.approx(share @ (ages - mean) ** 2, rel=1e-11)
    assert age_third_moment(p) == pytest.approx(share @ (ages - mean) ** 3, rel=1e-10)


def test_what_is_left_out_is_below_the_eyes_of_a_float() -> None:
    p = 0.2
    law = slot_law(PromptLaw.uniform(1), p)
    ages = law.probabilities.size - 1
    assert (1 - p) ** ages < 1e-18
    assert law.probabilities[1] == pytest.approx(p, rel=1e-15)


def test_a_round_has_the_prompts_law() -> None:
    law = PromptLaw.two_sizes(5)
    assert prompt_slot_law(law).probabilities.tolist() == [0, 0.5, 0, 0, 0, 0.5]
    assert isinstance(slot_law(law, 1.0), SlotLaw)
    assert slot_law(law, 1.0).variance == float(law.variance)


@pytest.mark.parametrize("p", [0.0, -0.1, 1.5, math.nan])
def test_no_such_probability(p: float) -> None:
    for make in (
        lambda: slot_law(PromptLaw.uniform(2), p),
        lambda: slot_law_at(PromptLaw.uniform(2), p, Growth.parse("1"), 3),
    ):
        with pytest.raises(InputError, match=f"probability of an end is {p}; expected 0 < p <= 1"):
            make()


def test_no_negative_growth() -> None:
    with pytest.raises(InputError, match="none below 0"):
        slot_law(PromptLaw.uniform(2), 0.5, -1)
    with pytest.raises(InputError, match="at least one"):
        slot_law_seen(PromptLaw.uniform(2), 0.5, [])


@pytest.mark.parametrize(("p", "growth"), [(1e-9, 1), (1e-12, 1), (5e-324, 1), (1e-4, 100_000)])
def test_a_law_that_nobody_can_hold_is_refused(p: float, growth: int) -> None:
    with pytest.raises(InputError, match="values, more than"):
        slot_law(PromptLaw.uniform(2), p, growth)
