"""The verdict on a printed figure: planted values, and that both sides are treated alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lbopt.studies.printed import (
    VERDICTS,
    Judged,
    Printed,
    Question,
    interval_of,
    printed_number,
    printed_range,
    verdict,
    within,
)
from tools.studies.reproduction.tolerances import same_side, within_effect

ABOUT = {"source": "a paper", "place": "Table 1"}
OUTSIDE = {"weaker", "stronger", "differs"}


def between(low: float, high: float) -> Printed:
    return printed_range(low, high, text="printed", **ABOUT)


def judged(printed: Printed, *values: float) -> str:
    return Judged(Question("item", "what", printed, lambda: None), values).verdict


@pytest.mark.parametrize(
    ("low", "high", "values", "expected"),
    [
        (-14, -7, (-10.0, -10.2, -9.8), "agrees"),
        (-14, -7, (-10.0, -5.0, -15.0), "undecided"),  # the mean is in the middle of the range, -10 ± 12.4 is not
        (-14, -7, (-6.0, -5.5, -6.5), "undecided"),  # -6 ± 1.2
        (-14, -7, (-6.0, -6.1, -5.9), "weaker"),
        (-14, -7, (-20.0, -20.1, -19.9), "stronger"),
        (-14, -7, (1.0, 1.1, 0.9), "differs"),
        (-14, -7, (0.0, 3.0, -3.0), "undecided"),
        (-14, -7, (-0.5, 0.5, 0.0), "differs"),  # no effect
        (2, 4, (1.0, 1.1, 0.9), "weaker"),
        (2, 4, (5.0, 5.1, 4.9), "stronger"),
        (2, 4, (-1.0, -1.1, -0.9), "differs"),
        (-3, 3, (5.0, 5.1, 4.9), "differs"),  # a range around no effect has no direction
        (-math.inf, 0, (-5.0, -5.1, -4.9), "agrees"),
        (-math.inf, 0, (-5.0, 5.0, -6.0), "undecided"),
        (-math.inf, 0, (5.0, 5.1, 4.9), "differs"),
        (0.035, math.inf, (0.2, 0.21, 0.19), "agrees"),
        (0.035, math.inf, (0.03, 0.05, 0.07), "undecided"),
        (0.035, math.inf, (0.02, 0.021, 0.019), "weaker"),
        (-8, 0, (-3.0, -3.1, -2.9), "agrees"),
        (-8, 0, (-3.0, 1.0, -4.0), "undecided"),
        (0, 8, (9.0, 7.5, 6.0), "undecided"),  # 7.5 ± 3.7 holds the end 8
        (-14, -7, (-10.0,), "undecided"),  # one seed has no interval
    ],
)
def test_a_verdict_sees_what_was_planted(low: float, high: float, values: tuple[float, ...], expected: str) -> None:
    assert judged(between(low, high), *values) == expected


def test_a_ratio_has_no_effect_at_one() -> None:
    printed = printed_number(0.5, within_effect(), nothing=1.0, **ABOUT)
    for ours, expected in ((0.5, "agrees"), (0.8, "weaker"), (0.3, "stronger"), (1.2, "differs")):
        assert verdict((ours, ours), printed) == expected


def test_a_level_has_no_direction() -> None:
    printed = printed_number(57.0, within(), nothing=None, **ABOUT)
    assert [verdict((ours, ours), printed) for ours in (20.0, 57.0, 90.0)] == ["differs", "agrees", "differs"]


def test_a_side_is_named_or_not() -> None:
    printed = printed_number(2.5, same_side(0.0, "same sign"), **ABOUT)
    assert judged(printed, 1.0, 1.1, 0.9) == "agrees"
    assert judged(printed, 3.0, -2.0) == "undecided"
    assert judged(printed, -1.0, -1.1, -0.9) == "differs"


ENDS = st.one_of(st.floats(-20, 20), st.sampled_from([-math.inf, math.inf, 0.0]))
RANGES = st.tuples(ENDS, ENDS).map(sorted).filter(lambda ends: ends[0] < ends[1])
OURS = st.tuples(st.floats(-30, 30), st.floats(-30, 30)).map(sorted)


@given(RANGES, OURS)
def test_mirrored_figures_have_the_same_verdict(ends: list[float], ours: list[float]) -> None:
    """A cut of ten is to a cut what a gain of ten is to a gain."""
    here = verdict((ours[0], ours[1]), between(*ends))
    assert here == verdict((-ours[1], -ours[0]), between(-ends[1], -ends[0]))
    assert here in VERDICTS


@given(RANGES, OURS, st.floats(0, 20), st.floats(0, 20))
def test_a_wider_interval_decides_nothing(ends: list[float], ours: list[float], left: float, right: float) -> None:
    """Noise speaks neither for agreement nor against it."""
    narrow = verdict((ours[0], ours[1]), between(*ends))
    wide = verdict((ours[0] - left, ours[1] + right), between(*ends))
    if narrow == "undecided":
        assert wide == "undecided"
    if wide == "agrees":
        assert narrow == "agrees"
    if narrow == "agrees":
        assert wide in ("agrees", "undecided")
    if narrow in OUTSIDE:
        assert wide in OUTSIDE | {"undecided"}


@given(st.floats(-20, 20), OURS)
def test_inside_and_outside_are_shown_alike(end: float, ours: list[float]) -> None:
    """Of two statements that exclude each other, the one agrees exactly where the other does not."""
    if end in ours:
        return
    below, above = (verdict((ours[0], ours[1]), between(*ends)) for ends in ((-math.inf, end), (end, math.inf)))
    assert (below == "agrees") == (above in OUTSIDE)
    assert (above == "agrees") == (below in OUTSIDE)
    assert (below == "undecided") == (above == "undecided")


@given(RANGES, OURS, st.floats(0, 10))
def test_a_wider_range_agrees_no_less(ends: list[float], ours: list[float], more: float) -> None:
    if verdict((ours[0], ours[1]), between(*ends)) == "agrees":
        assert verdict((ours[0], ours[1]), between(ends[0] - more, ends[1] + more)) == "agrees"


def test_on_an_end_both_sides_are_named_as_seldom() -> None:
    """The truth lies on the lower end: agreement and difference are each found in 2.5 % of the studies."""
    drawn = np.random.default_rng(3).normal(10.0, 1.0, (4000, 5))
    found = [judged(between(10.0, 30.0), *row) for row in drawn.tolist()]
    assert found.count("agrees") / 4000 == pytest.approx(0.025, abs=0.008)
    assert found.count("weaker") / 4000 == pytest.approx(0.025, abs=0.008)


def test_single_runs_lie_in_the_interval_of_single_runs() -> None:
    """Of normal runs, the next one is inside 95 times of 100; the interval of the mean would miss most."""
    runs = np.random.default_rng(7).normal(4.0, 2.0, (4000, 6))
    inside = []
    for run in runs.tolist():
        found = interval_of(run[:-1], single_run=True)
        assert found is not None
        inside.append(found[0] <= run[-1] <= found[1])
    assert np.mean(inside) == pytest.approx(0.95, abs=0.012)


def test_intervals_of_the_mean_of_one_run_and_of_exact_values() -> None:
    values = (4.0, 5.0, 4.5)
    half = stats.t.ppf(0.975, 2) * stats.sem(values)
    assert interval_of(values) == pytest.approx((4.5 - half, 4.5 + half))
    assert interval_of(values, single_run=True) == pytest.approx((4.5 - 2 * half, 4.5 + 2 * half))
    assert interval_of((5.0,)) is interval_of((5.0,), single_run=True) is None
    assert interval_of((5.0,), exact=True) == (5.0, 5.0)
