"""Lemma 4: the closed forms are what they are derived to be, the means hold, and too small a bound is caught."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.theory.chains.batch_means import batch_steps
from lbopt.theory.chains.replete import Replete
from lbopt.theory.claims import lemma_4
from lbopt.theory.claims.lemma_4 import (
    corrected_rows,
    flat_rows,
    measure_corrected,
    measure_flat,
    measure_printed,
    printed_rows,
)
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.laws.gap_bounds import deviation, gap_bound, irregular, least_bound, noise, usual_bound
from lbopt.theory.laws.slot_law import PromptLaw

jit = pytest.mark.jit
TWO = PromptLaw.two_sizes(4)


@jit
@pytest.mark.parametrize("claim", lemma_4.CLAIMS, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    share = sum(finding.is_sampled for finding in findings)
    assert gravest(finding.verdict(share) for finding in findings) == claim.expected


@pytest.fixture(scope="module")
def run():
    return Replete(8, 1024, 0.5, TWO).run(20 * batch_steps(0.5), 0)


def lifted(run, gap, imbalance=0, times=1):
    """The run with larger gaps and imbalances, of a fleet with so many times the slots."""
    steps = SimpleNamespace(gap=run.steps.gap + gap, imbalance=run.steps.imbalance + imbalance)
    return replace(run, steps=steps, of=replace(run.of, B=run.of.B * times))


@jit
def test_gaps_above_the_bounds_are_caught(run):
    """The mean gap is near s_max - 2: it is lifted to just beyond each bound."""
    length, proved = batch_steps(0.5), least_bound(8, 2**20, 0.5, 4)
    assert {row.verdict(2) for row in corrected_rows("", run, length, proved)} == {Verdict.HOLDS}
    just = lifted(run, 0.3)
    asymptotic, as_proved = corrected_rows("", just, length, replace(proved, bound=2.05))
    wide = lifted(run, 3, 50)
    assert (asymptotic.verdict(), as_proved.verdict()) == (Verdict.REFUTED, Verdict.REFUTED)
    assert [row.verdict() for row in printed_rows("", wide, length)] == [Verdict.HOLDS] * 2
    wider = lifted(run, 7, 52)
    assert [row.verdict() for row in printed_rows("", wider, length)] == [Verdict.REFUTED] * 2


@jit
def test_a_gap_that_grows_by_a_tenth_with_each_doubling_is_caught(run):
    grown = [lifted(run, i, times=2**i) for i in range(3)]
    rows = flat_rows(grown, batch_steps(0.5))
    assert [row.verdict(2) for row in rows] == [Verdict.REFUTED] * 2
    still = [lifted(run, 0, times=2**i) for i in range(3)]
    assert [row.verdict(2) for row in flat_rows(still, batch_steps(0.5))] == [Verdict.HOLDS] * 2


@jit
def test_below_the_onset_the_numbers_are_shown_and_nothing_follows():
    gap, imbalance = measure_printed(G=8, B=1024, p=0.02, s_max=10, seed=1)
    assert gap.verdict() == imbalance.verdict() == Verdict.OUTSIDE
    assert 2000 < gap.measured < 3200
    assert imbalance.measured > imbalance.predicted == 3500


def test_the_constants_of_one_choice_by_hand():
    found = gap_bound(2, 100, 0.5, 3, eta=0.5, exponent=2.0, age=4)
    t = 4 * 8 * math.sqrt(0.25 * 100 * 2) + 8 / 3 * 8 * 2
    delta = 0.5 / 5
    epsilon = 2 * 2 * 100 * 8 * (math.exp(-(delta**2) * 50 / 3) + math.exp(-2)) + 2 * 100**2 * 0.5**5 * (3 + 4 + 2 + 2)
    assert deviation(0.5, 3) == delta
    assert noise(100, 0.5, 8, 2.0) == pytest.approx(t)
    assert found.noise == pytest.approx(t)
    assert found.epsilon == pytest.approx(epsilon)
    assert not found.holds
    assert found.bound == math.inf


def test_the_last_term_is_the_tail_of_the_ages():
    """B times the mean over G B geometric ages A of (s_max + A + 1) where A > T, summed age by age; 1/p >= (1-p)/p."""
    G, B, p, s_max, T = 3, 50, 0.3, 5, 12
    tail = sum(p * (1 - p) ** a * (s_max + a + 1) for a in range(T + 1, 2_000))
    only_old = gap_bound(G, B, p, s_max, eta=1e-9, exponent=1e9, age=T).epsilon - 2 * G * B * (
        s_max + T + 1
    ) * math.exp(-(deviation(1e-9, s_max) ** 2) * p * B / 3)
    assert G * B**2 * tail <= only_old <= 1.1 * G * B**2 * tail


@pytest.mark.more
@given(
    eta=st.floats(0.01, 0.99),
    exponent=st.floats(0, 40),
    age=st.integers(0, 60),
    fleet=st.sampled_from([(8, 8192, 0.9, 2), (4, 4096, 0.95, 2), (2, 2**20, 0.5, 4), (8, 1024, 0.5, 4)]),
)
def test_no_choice_is_much_better_than_the_least_one(eta, exponent, age, fleet):
    assert least_bound(*fleet).bound <= 1.05 * gap_bound(*fleet, eta, exponent, age).bound


@pytest.mark.parametrize("fleet", [(8, 8192, 0.9, 2), (2, 2**20, 0.5, 4)])
def test_the_least_bound_meets_its_condition_and_tends_to_s_max_less_2(fleet):
    G, B, p, s_max = fleet
    found = least_bound(G, B, p, s_max)
    assert found.holds
    assert found.eta * p * B - found.noise >= (1 - p) * (s_max - 2)
    assert s_max - 2 < least_bound(G, 4 * B, p, s_max).bound < s_max - 2 + 1e-3
    assert not usual_bound(G, B, p, s_max).holds


@given(st.integers(2, 64), st.integers(1, 200), st.floats(0.05, 0.95), st.floats(0.05, 0.9))
def test_chernoff_is_above_the_binomial_tails(G, B, p, delta):
    from lbopt.theory.claims.lemma_2_steps import missing_probability

    assert missing_probability(G, B, p, delta) <= min(1.0, irregular(G, B, p, delta)) + 1e-12


@jit
@pytest.mark.parametrize("pool", ["all", "two"])
def test_with_all_sizes_nothing_is_left_and_with_two_at_most_s_max_less_two(pool):
    (row,) = measure_corrected(pool=pool, seed=5)
    assert row.measured == 0 if pool == "all" else 1 < row.measured <= 2


@pytest.mark.parametrize(
    ("measure", "wrong", "says"),
    [
        (measure_printed, {"G": 1}, "lemma-4-printed assumes at least G = 2 workers; G is 1"),
        (measure_printed, {"batches": 2}, "batches is 2"),
        (measure_corrected, {"peak": "top"}, "peak is 'top'"),
        (measure_corrected, {"pool": "odd"}, "pool is 'odd'"),
        (measure_corrected, {"s_max": 1}, "s_max is 1"),
        (measure_flat, {"doublings": 1}, "doublings is 1"),
        (measure_flat, {"p": 0.001}, "fleets of at most"),
        (measure_flat, {"p": 2.0}, "p is 2.0"),
    ],
)
def test_what_it_refuses(measure, wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)


def test_a_run_is_the_same_for_the_same_seed():
    with np.errstate(over="ignore"):
        runs = [Replete(2, 4, 0.5, TWO).run(20, seed, 3) for seed in (1, 1, 2)]
    first, again, other = (run.steps.gap_pre.tolist() for run in runs)
    assert first == again != other
