"""Planted errors: the smallest that is refuted is refuted, a slightly smaller one is not, and zeros detect nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.theory.finding import Finding, Verdict, gravest, smallest_exponent, smallest_plant


def finding(**given: Any) -> Finding:
    usual: dict[str, Any] = {"regime": "", "quantity": "q", "kind": "mean", "relation": "=", "measured": 1.0}
    return Finding(**{**usual, "predicted": 1.0, "error": 0.01, "trials": 100, **given})


@given(
    st.sampled_from(["=", "<=", ">="]),
    st.floats(0.1, 10),
    st.floats(0.001, 0.2),
    st.sampled_from([None, 19.0]),
    st.integers(1, 50),
)
def test_the_smallest_planted_share_is_where_the_verdict_turns(relation, value, error, dof, share):
    one = finding(relation=relation, measured=value, predicted=value, error=error * value, dof=dof)
    plant = smallest_plant(one, share)
    assert plant is not None
    assert plant.is_share
    for size, sign, wanted in ((plant.below, -1, relation in ("=", "<=")), (plant.above, 1, relation in ("=", ">="))):
        assert size is None or wanted
        if size is not None:
            planted = replace(one, predicted=value * (1 + sign * size))
            assert planted.verdict(share) is Verdict.REFUTED
            nearly = replace(one, predicted=value * (1 + sign * size * 0.97))
            assert nearly.verdict(share) is not Verdict.REFUTED
        elif wanted and sign < 0:
            assert replace(one, predicted=0.0).verdict(share) is not Verdict.REFUTED


def test_a_normal_mean_detects_its_region():
    plant = smallest_plant(finding())
    assert plant is not None
    assert plant.smallest == pytest.approx(0.0389, rel=0.02)  # 3.89 standard errors of 1 %
    assert plant.sign == "±"


@pytest.mark.parametrize(
    ("given_", "below", "above"),
    [
        ({"kind": "exact", "relation": "<=", "measured": 0, "predicted": 0}, 1, None),
        ({"kind": "exact", "relation": "<=", "measured": -3, "predicted": 0}, 4, None),
        ({"kind": "exact", "relation": "=", "measured": 0, "predicted": 0}, 1, 1),
        ({"kind": "computed", "relation": "<=", "measured": 0.5}, 0.5, None),
        ({"kind": "computed", "relation": ">=", "measured": 2.0}, None, 1.0),
        ({"kind": "mean", "relation": "<=", "measured": 0.25, "error": 0.0}, 0.75, None),
        ({"quantity": "exponent of B", "measured": 0.5, "predicted": 0.5, "error": 0.01}, 0.0389, 0.0389),
    ],
)
def test_each_kind(given_, below, above):
    plant = smallest_plant(finding(**given_))
    assert plant is not None
    for found, expected in ((plant.below, below), (plant.above, above)):
        assert found is None if expected is None else found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "given_",
    [
        {"kind": "fit", "measured": 0.4},
        {"outside": "B is small"},
        {"measured": 2.0},
        {"relation": "<=", "measured": 0.0, "error": 0.0},
    ],
)
def test_what_says_nothing_detects_nothing(given_):
    assert smallest_plant(finding(**given_)) is None


def test_zeros_under_an_upper_bound_are_no_evidence():
    zeros = finding(relation="<=", measured=0.0, error=0.0)
    assert zeros.nothing_left
    assert not zeros.is_sampled
    assert zeros.verdict() is Verdict.NOTHING_LEFT
    assert gravest([zeros.verdict(), Verdict.OUTSIDE]) is Verdict.NOTHING_LEFT
    assert gravest([zeros.verdict(), Verdict.HOLDS]) is Verdict.HOLDS
    assert replace(zeros, predicted=-0.1).verdict() is Verdict.REFUTED
    assert replace(zeros, undecided=1).verdict() is Verdict.UNDECIDED
    assert replace(zeros, relation="=", predicted=0.0).verdict() is Verdict.HOLDS
    assert replace(zeros, relation="=").verdict() is Verdict.REFUTED


def test_an_exponent_is_planted_from_the_fewest_slots_on():
    few, many = finding(B=100), finding(B=10_000)
    found = smallest_exponent([few, many])
    assert found == pytest.approx(-math.log1p(-0.0389) / math.log(100), rel=0.03)
    planted = replace(many, predicted=many.predicted * 100**-found)
    assert planted.verdict() is Verdict.REFUTED
    assert smallest_exponent([few]) is None
    assert smallest_exponent([few, replace(many, outside="B is large")]) is None
    assert smallest_exponent([finding(), finding()]) is None
