"""The checker itself, checked.

A check that could not fail proves nothing. So: the intervals that it computes cover a known truth as often as they say,
on data with a known slope; and wrong exponents and a wrong constant, planted into the findings of FCFS as it was
sampled, are refuted by the same machinery that lets the true ones hold. The bootstrap of the scaling study is counted
in `tests/studies/test_scaling_fit.py`, the size of verdicts in `test_finding.py`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from lbopt.theory.chains.batch_means import fitted_slope, slope
from lbopt.theory.claims import fcfs
from lbopt.theory.finding import Finding, Verdict, gravest

SLOTS = (16, 64, 256, 1024)


@pytest.mark.some(2)
@pytest.mark.parametrize("exponent", [0.5, -1.0, 0.4])
@pytest.mark.parametrize("errors", [(0.01, 0.01, 0.01, 0.01), (0.002, 0.02, 0.01, 0.04)])
def test_intervals_of_an_exponent_cover_it(exponent: float, errors: tuple[float, ...]) -> None:
    """2,000 runs with a known exponent: 93 to 97 % of the normal 95 % intervals hold it."""
    truth = 7 * np.array(SLOTS, float) ** exponent
    relative = np.array(errors)
    samples = truth * (1 + relative * np.random.default_rng(3).standard_normal((2000, len(SLOTS))))
    covered = 0
    for sample in samples:
        found, error = fitted_slope(SLOTS, sample.tolist(), (relative * truth).tolist())
        covered += abs(found - exponent) <= stats.norm.ppf(0.975) * error
    assert 0.93 <= covered / 2000 <= 0.97


def test_exact_values_give_their_exponent() -> None:
    values = [3 * B**0.37 for B in SLOTS]
    assert slope(SLOTS, values) == pytest.approx(0.37, abs=1e-12)
    found, error = fitted_slope(SLOTS, values, [0.0] * 4)
    assert (found, error) == (pytest.approx(0.37, abs=1e-12), 0)


def test_the_error_is_that_of_two_points() -> None:
    """Of two points the exponent is the difference of logarithms over that of x."""
    found, error = fitted_slope((1, np.e**2), (1, np.e), (0.3, 0.4 * np.e))
    assert (found, error) == (pytest.approx(0.5), pytest.approx(0.25))


@pytest.fixture(scope="module")
def exponents() -> list[Finding]:
    return fcfs.measure_exponent(G=16, seed=8)


@pytest.fixture(scope="module")
def costs() -> list[Finding]:
    return [one for G, B in ((2, 16), (16, 64), (64, 16)) for one in fcfs.measure_exact(G=G, B=B, seed=8)]


def verdict(findings: list[Finding]) -> Verdict:
    return gravest(one.verdict(sum(each.is_sampled for each in findings)) for one in findings)


@pytest.mark.jit
def test_what_is_true_holds(exponents: list[Finding], costs: list[Finding]) -> None:
    assert verdict(exponents) is Verdict.HOLDS
    assert verdict(costs) is Verdict.HOLDS
    assert 0.45 < exponents[0].predicted < 0.5


@pytest.mark.jit
@pytest.mark.parametrize("wrong", [0.4, 0.6])
def test_a_planted_exponent_is_refuted(exponents: list[Finding], wrong: float) -> None:
    planted = [dataclasses.replace(exponents[0], predicted=wrong), *exponents[1:]]
    assert verdict(planted) is Verdict.REFUTED
    sides = {0.4: exponents[2], 0.6: exponents[1]}  # at most 0.41 is false, and at least 0.59
    moved = dataclasses.replace(sides[wrong], predicted=wrong + (0.01 if wrong < 0.5 else -0.01))
    assert verdict([moved]) is Verdict.REFUTED


@pytest.mark.jit
@pytest.mark.parametrize("factor", [1.1, 1 / 1.1])
def test_a_planted_constant_is_refuted(costs: list[Finding], factor: float) -> None:
    for place in range(len(costs)):
        planted = list(costs)
        planted[place] = dataclasses.replace(costs[place], predicted=factor * costs[place].predicted)
        assert verdict(planted) is Verdict.REFUTED
