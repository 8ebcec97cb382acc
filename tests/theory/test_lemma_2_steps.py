"""Lemma 2 on chains: no step is beyond the bounds, and a bound too small is."""

import math

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.theory.chains.replete import Replete
from lbopt.theory.claims import lemma_2_steps
from lbopt.theory.claims.lemma_2 import corrected_bound, sharp_bound
from lbopt.theory.claims.lemma_2_steps import (
    corrected_bounds,
    event_rows,
    held_against,
    measure_regular,
    measure_steps,
    missing_probability,
    sharp_bounds,
)
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.steps.small_step import SmallStep

jit = pytest.mark.jit
quiet = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@jit
@pytest.mark.parametrize("claim", lemma_2_steps._OF_STEPS, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    share = sum(finding.is_sampled for finding in findings)
    assert gravest(finding.verdict(share) for finding in findings) == claim.expected


@jit
@pytest.mark.parametrize("bounds", [corrected_bounds, sharp_bounds])
@pytest.mark.parametrize("peak", ["lowest", "raised"])
def test_a_bound_too_small_by_one_is_caught(bounds, peak):
    law = PromptLaw.two_sizes(4)
    run = Replete(8, 256, 0.5, law, peak=peak).run(500, 3)
    assert held_against("", "", run, bounds(run, law)).verdict() == Verdict.HOLDS
    assert held_against("", "", run, bounds(run, law) - 1).verdict() == Verdict.REFUTED


@quiet
@pytest.mark.parametrize("law", [PromptLaw.uniform(4), PromptLaw.two_sizes(5)], ids=lambda law: law.name)
def test_the_bounds_of_a_run_are_those_of_its_steps(law):
    run = Replete(3, 8, 0.4, law).run(40, 1, 5)
    for k in range(40):
        fewest, most = int(run.steps.fewest[k]), int(run.steps.most[k])
        copies = (3 * most + 1,) * len(law.lengths)
        step = SmallStep((int(run.steps.gap_pre[k]), 0, 0), (fewest, most, most), law.lengths, copies)
        assert corrected_bounds(run, law)[k] == corrected_bound(step)
        assert sharp_bounds(run, law)[k] == sharp_bound(step)


def test_the_probability_of_the_event_is_that_of_a_sum_over_all_counts():
    B, p, delta = 12, 0.4, 0.3
    inside = sum(
        math.comb(B, c) * p**c * (1 - p) ** (B - c)
        for c in range(B + 1)
        if (1 - delta) * p * B <= c <= (1 + delta) * p * B
    )
    assert missing_probability(5, B, p, delta) == pytest.approx(1 - inside**5, rel=1e-12)


def test_too_small_a_bound_on_the_event_is_caught():
    exact = missing_probability(8, 4096, 0.5, 0.04)
    steps = 4_000
    of = Replete(8, 4096, 0.5, PromptLaw.uniform(4))
    rows = event_rows("", round(exact * steps), steps, of, 0.04, exact / 1.3)
    assert rows[1].verdict() == Verdict.REFUTED
    often = event_rows("", round(2 * exact * steps), steps, of, 0.04, exact)
    assert [row.verdict() for row in often] == [Verdict.REFUTED, Verdict.HOLDS, Verdict.REFUTED]


@jit
def test_a_bound_that_says_nothing_is_outside():
    rows = measure_regular(B=64, steps=100, seed=0)
    assert [row.verdict() for row in rows] == [Verdict.HOLDS, Verdict.OUTSIDE, Verdict.OUTSIDE]
    assert np.isclose(rows[1].predicted, 16 * math.exp(-((0.5 / 7) ** 2) * 32 / 3))


@pytest.mark.parametrize(
    ("measure", "wrong", "says"),
    [
        (measure_steps, {"p": 1.0}, "lemma-2-steps assumes outputs of law Geo"),
        (measure_steps, {"pool": "odd"}, "pool is 'odd'"),
        (measure_steps, {"peak": "odd"}, "peak is 'odd'"),
        (measure_steps, {"composition": "odd"}, "composition is 'odd'"),
        (measure_steps, {"steps": 0}, "steps is 0"),
        (measure_regular, {"eta": 1.0}, "eta is 1.0"),
        (measure_regular, {"s_max": 1}, "s_max is 1"),
        (measure_regular, {"G": 1}, "G is 1"),
    ],
)
def test_what_it_refuses(measure, wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)
