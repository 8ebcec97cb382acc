"""Findings: every kind and relation, p-values as SciPy gives them by hand, and the verdicts that follow.

**The checker itself is checked**: over 2,000 true claims of ten findings each, verdicts have the
size that they claim; the other half, coverage and planted falsehoods, is in `test_checker.py`.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lbopt.theory.finding import KINDS, RELATIONS, Finding, Verdict, gravest


def finding(**given: Any) -> Finding:
    usual: dict[str, Any] = {"regime": "r", "quantity": "q", "kind": "mean", "relation": "=", "measured": 1.0}
    return Finding(**{**usual, "predicted": 1.0, **given})


@pytest.mark.parametrize("dof", [None, 5.0])
@pytest.mark.parametrize("score", [-3.0, -0.5, 0.0, 0.5, 3.0])
def test_means(dof: float | None, score: float) -> None:
    law = stats.norm() if dof is None else stats.t(dof)
    chances = {"=": 2 * law.cdf(-abs(score)), "<=": 1 - law.cdf(score), ">=": law.cdf(score)}
    for relation, chance in chances.items():
        one = finding(relation=relation, measured=10 + 0.2 * score, predicted=10.0, error=0.2, dof=dof)
        assert one.p_value() == pytest.approx(chance, rel=1e-9), relation
        assert one.is_sampled


def test_means_without_error_are_judged_as_they_stand() -> None:
    for relation, measured, chance in (("=", 2.0, 1), ("=", 2.1, 0), ("<=", 1.9, 1), ("<=", 2.1, 0), (">=", 1.9, 0)):
        assert finding(relation=relation, measured=measured, predicted=2.0).p_value() == chance
    assert finding().interval() is None


@pytest.mark.parametrize(("happened", "trials", "claimed"), [(3, 40, 0.1), (9, 40, 0.1), (0, 40, 0.1), (40, 40, 0.9)])
def test_frequencies(happened: int, trials: int, claimed: float) -> None:
    below = sum(math.comb(trials, k) * claimed**k * (1 - claimed) ** (trials - k) for k in range(happened + 1))
    exactly = math.comb(trials, happened) * claimed**happened * (1 - claimed) ** (trials - happened)
    for relation, chance in (("<=", 1 - below + exactly), (">=", below)):
        one = finding(kind="frequency", relation=relation, measured=happened / trials, predicted=claimed, trials=trials)
        assert one.p_value() == pytest.approx(chance, rel=1e-9), relation
    two = finding(kind="frequency", measured=happened / trials, predicted=claimed, trials=trials)
    assert two.p_value() == pytest.approx(stats.binomtest(happened, trials, claimed).pvalue)
    low, high = two.interval() or (math.nan, math.nan)
    assert low <= happened / trials <= high


def test_a_bound_above_one_is_no_bound() -> None:
    one = finding(kind="frequency", relation="<=", measured=1.0, predicted=3.7, trials=50)
    assert one.verdict() is Verdict.HOLDS


def test_exact_inequalities_need_one_violation() -> None:
    clean = finding(kind="exact", relation="<=", measured=-1.0, predicted=0.0, trials=9)
    assert clean.verdict() is Verdict.HOLDS
    assert not clean.is_sampled
    once = finding(kind="exact", relation="<=", measured=1.0, predicted=0.0, trials=9, violations=1)
    assert once.verdict(10_000) is Verdict.REFUTED


@pytest.mark.parametrize(
    ("relation", "measured", "verdict"),
    [
        ("=", 1.0009, Verdict.HOLDS),
        ("=", 0.9991, Verdict.HOLDS),
        ("=", 1.0011, Verdict.REFUTED),
        ("<=", 0.5, Verdict.HOLDS),
        ("<=", 1.0009, Verdict.HOLDS),
        ("<=", 1.0011, Verdict.REFUTED),
        (">=", 1.5, Verdict.HOLDS),
        (">=", 0.9989, Verdict.REFUTED),
    ],
)
def test_computed_numbers(relation: str, measured: float, verdict: Verdict) -> None:
    for sign in (1, -1):
        flipped = {"=": "=", "<=": ">=", ">=": "<="}[relation] if sign < 0 else relation
        one = finding(
            kind="computed", relation=flipped, measured=sign * measured, predicted=float(sign), tolerance=1e-3
        )
        assert one.verdict(99) is verdict
        assert not one.is_sampled


def test_fits_are_their_p_value() -> None:
    for chance, verdict in ((0.3, Verdict.HOLDS), (0.0009, Verdict.UNDECIDED), (0.9e-5, Verdict.REFUTED)):
        one = finding(kind="fit", measured=chance)
        assert one.p_value() == chance
        assert one.verdict(10) is verdict


@pytest.mark.parametrize("share", [1, 10, 250])
@pytest.mark.parametrize("relation", ["=", "<=", ">="])
def test_bonferroni(share: int, relation: str) -> None:
    """The borders of the joint regions: 1 % and 0.01 % divided by the findings that chance moves."""
    sides = 2 if relation == "=" else 1
    for level, inside, outside in (
        (0.01, Verdict.HOLDS, Verdict.UNDECIDED),
        (0.0001, Verdict.UNDECIDED, Verdict.REFUTED),
    ):
        border = stats.t(19).isf(level / share / sides)
        for score, verdict in ((0.999 * border, inside), (1.001 * border, outside)):
            measured = -score if relation == ">=" else score
            one = finding(relation=relation, measured=measured, predicted=0.0, error=1.0, dof=19)
            assert one.verdict(share) is verdict


def test_interval_is_the_joint_one() -> None:
    one = finding(measured=7.0, error=0.5, dof=19)
    low, high = one.interval(10) or (math.nan, math.nan)
    half = 0.5 * stats.t(19).ppf(1 - 0.01 / 10 / 2)
    assert (low, high) == pytest.approx((7 - half, 7 + half))


@given(st.sampled_from(RELATIONS), st.floats(-5, 5), st.sampled_from([1, 3, 40]))
def test_a_two_sided_average_holds_where_its_interval_has_the_claim(relation: str, score: float, share: int) -> None:
    one = finding(relation=relation, measured=score, predicted=0.0, error=1.0)
    low, high = one.interval(share) or (math.nan, math.nan)
    if relation == "=" and abs(abs(score) - high + score) > 1e-9:
        assert (one.verdict(share) is Verdict.HOLDS) == (low <= 0 <= high)
    if (relation == "<=" and low > 0) or (relation == ">=" and high < 0):
        assert one.verdict(share) is not Verdict.HOLDS


def test_what_is_undecided_never_holds() -> None:
    assert finding(kind="exact", relation="<=", trials=5, undecided=1).verdict() is Verdict.UNDECIDED
    assert finding(kind="computed", undecided=1).verdict() is Verdict.UNDECIDED
    assert finding(error=0.1, undecided=1).verdict() is Verdict.UNDECIDED
    assert finding(error=0.1, predicted=9.0, undecided=1).verdict() is Verdict.REFUTED


@pytest.mark.parametrize("kind", KINDS)
def test_outside_says_nothing(kind: str) -> None:
    one = finding(kind=kind, measured=0.0, predicted=0.9, trials=40, violations=3, error=0.001, outside="B is small")
    assert one.verdict() is Verdict.OUTSIDE
    assert not one.is_sampled


@pytest.mark.parametrize("name", ["measured", "predicted", "error"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_finding_without_a_number(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"'q' at r: {name} is {value}"):
        finding(**{name: value})


@pytest.mark.parametrize("wrong", [{"kind": "guess"}, {"relation": "<"}])
def test_no_finding_of_an_unknown_kind(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="finding has kind"):
        finding(**wrong)


@given(
    st.sampled_from(KINDS),
    st.sampled_from(RELATIONS),
    st.floats(0, 1),
    st.none() | st.floats(1, 100),
    st.booleans(),
    st.text(max_size=5),
)
@settings(max_examples=40)
def test_json_and_back(kind: str, relation: str, measured: float, dof: float | None, example: bool, note: str) -> None:
    counterexample = {"problem": {"base": [1, 2]}, "says": "least imbalance 3", "assignment": [0, -1]}
    one = finding(
        kind=kind,
        relation=relation,
        measured=measured,
        dof=dof,
        error=0.5,
        trials=7,
        undecided=2,
        counterexample=counterexample if example else None,
        note=note,
        outside=note,
    )
    assert Finding.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_strain_is_the_share_by_which_it_misses() -> None:
    assert finding(measured=1.1).strain() == pytest.approx(0.1)
    assert finding(measured=0.9).strain() == pytest.approx(0.1)
    assert finding(measured=0.9, relation="<=").strain() == pytest.approx(-0.1)
    assert finding(measured=-3.0, predicted=-2.0, relation=">=").strain() == pytest.approx(0.5)


def test_the_gravest_verdict_counts() -> None:
    holds, outside, undecided, refuted = Verdict.HOLDS, Verdict.OUTSIDE, Verdict.UNDECIDED, Verdict.REFUTED
    assert gravest([holds, refuted, undecided, outside]) is refuted
    assert gravest([holds, undecided, outside]) is undecided
    assert gravest([outside, holds]) is holds
    assert gravest([outside]) is outside
    assert gravest([]) is undecided
    assert [str(one) for one in Verdict] == ["refuted", "undecided", "holds", "nothing left", "outside the regime"]


@pytest.mark.parametrize("relation", RELATIONS)
def test_verdicts_have_their_size(relation: str) -> None:
    """2,000 true claims of ten averages each: at most 1.5 % do not hold (1 % is meant), and at most two are refuted."""
    scores = stats.t(19).rvs((2000, 10), random_state=np.random.default_rng(5))
    least = stats.t(19).isf(0.02 / 10 / 2)  # below, nothing can be decided against a claim: saves the time
    missed = refuted = 0
    for claim in scores:
        found = gravest(
            finding(relation=relation, measured=score, predicted=0.0, error=1.0, dof=19).verdict(10)
            for score in claim
            if abs(score) > least or score == claim[0]
        )
        missed += found is not Verdict.HOLDS
        refuted += found is Verdict.REFUTED
    assert missed / 2000 <= 0.015
    assert refuted / 2000 <= 1e-3


def test_verdicts_on_frequencies_have_at_most_their_size() -> None:
    """The binomial test is conservative: true claims about counts fail less often than the 1 % that is meant."""
    counts = np.random.default_rng(6).binomial(200, 0.03, (2000, 10))
    verdicts = {
        count: finding(kind="frequency", relation="<=", measured=count / 200, predicted=0.03, trials=200).verdict(10)
        for count in np.unique(counts).tolist()
    }
    found = [gravest(verdicts[count] for count in claim) for claim in counts.tolist()]
    assert sum(one is not Verdict.HOLDS for one in found) / 2000 <= 0.015
    assert sum(one is Verdict.REFUTED for one in found) / 2000 <= 1e-3
