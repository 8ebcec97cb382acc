"""Least squares, laws and comparisons against refits, other libraries and worked cases."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lbopt.exceptions import InputError
from lbopt.hardware.fit import (
    LAWS,
    Observations,
    Rows,
    Variable,
    calibrate,
    compare_two,
    fit_law,
    hold_out,
    least_squares,
)

finite = st.floats(-100, 100, allow_nan=False).map(lambda v: round(v, 3))


@st.composite
def regressions(draw, rows=(5, 12)):
    n = draw(st.integers(*rows))
    x = np.array(draw(st.lists(st.integers(1, 400), min_size=n, max_size=n, unique=True)), dtype=float)
    y = np.array(draw(st.lists(finite, min_size=n, max_size=n))) + 200.0
    return x, y


def one_group(x, y, **more):
    columns = {"x": np.asarray(x, float)} | {role: np.asarray(v, float) for role, v in more.items()}
    return Observations("g", np.asarray(y, float), columns, tuple(f"r{i}" for i in range(len(y))), 4)


def rows_of(*groups, kind="time", roles=("x",)):
    regressors = {role: Variable(role, role, "tokens") for role in roles}
    return Rows("test", Variable("y", "tpot", kind), regressors, groups)


@settings(max_examples=60, deadline=None)
@given(regressions())
def test_a_line_against_scipy(data):
    x, y = data
    ours = least_squares(np.column_stack([np.ones_like(x), x]), y)
    theirs = stats.linregress(x, y)
    assert ours.estimates == pytest.approx([theirs.intercept, theirs.slope], rel=1e-7, abs=1e-9)
    assert ours.rmse_unbiased**2 * (x.size - 2) == pytest.approx(ours.rmse**2 * x.size)
    if np.ptp(y) == 0:
        assert math.isnan(ours.r_squared)
        return
    assert ours.errors == pytest.approx([theirs.intercept_stderr, theirs.stderr], rel=1e-6, abs=1e-9)
    assert ours.r_squared == pytest.approx(theirs.rvalue**2, abs=1e-9)
    half = stats.t.ppf(0.975, x.size - 2) * theirs.stderr
    assert ours.high[1] - ours.low[1] == pytest.approx(2 * half, rel=1e-6, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(regressions(), st.sampled_from([name for name in LAWS if "heaviest" not in name]))
def test_leave_one_out_is_what_refitting_gives(data, name):
    x, y = data
    fit = fit_law(LAWS[name], one_group(x, y))
    for i in range(x.size):
        keep = np.arange(x.size) != i
        refit = fit_law(LAWS[name], one_group(x[keep], y[keep]))
        predicted = refit.predict({"x": x[i : i + 1]})[0]
        if math.isinf(predicted):
            assert math.isinf(fit.left_out[i])
        else:
            assert fit.left_out[i] == pytest.approx(y[i] - predicted, rel=1e-6, abs=1e-6 * (1 + abs(predicted)))


@settings(max_examples=30, deadline=None)
@given(regressions(), st.floats(0.01, 100), st.floats(0.01, 100))
def test_units_change_numbers_and_no_finding(data, by_x, by_y):
    x, y = data
    plain, scaled = (
        {name: fit_law(LAWS[name], one_group(*pair)) for name in ("linear", "square root", "logarithmic")}
        for pair in ((x, y), (by_x * x, by_y * y))
    )
    for name in plain:
        assert scaled[name].left_out_error == pytest.approx(by_y * plain[name].left_out_error, rel=1e-6, abs=1e-7)
        assert scaled[name].numbers.leverages == pytest.approx(plain[name].numbers.leverages, abs=1e-8)
    assert scaled["linear"].numbers.estimates[1] == pytest.approx(
        by_y / by_x * plain["linear"].numbers.estimates[1], rel=1e-6, abs=1e-7
    )


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("linear", lambda x: 5 + 0.3 * x),
        ("square root", lambda x: 5 + 0.3 * np.sqrt(x)),
        ("logarithmic", lambda x: 5 + 0.3 * np.log(x)),
        ("reciprocal", lambda x: 1000 / (5 + 0.3 * x)),
    ],
)
def test_a_law_recovers_itself(name, law):
    x = np.array([1.0, 3.0, 10.0, 40.0, 90.0])
    fit = fit_law(LAWS[name], one_group(x, law(x)))
    assert fit.numbers.estimates == pytest.approx([5, 0.3])
    assert fit.left_out_error == pytest.approx(0, abs=1e-9)
    assert fit.predict({"x": np.array([7.0])}) == pytest.approx(law(np.array([7.0])))


def test_heaviest_and_mean_recover_the_barrier_with_a_mean_term():
    heavy, mean = np.array([100.0, 90, 120, 80, 95]), np.array([90.0, 90, 80, 75, 70])
    observed = one_group(heavy - mean, 4 + 0.1 * heavy + 0.05 * mean, max_load=heavy, mean_load=mean)
    fit = fit_law(LAWS["heaviest and mean"], observed)
    assert fit.numbers.estimates == pytest.approx([4, 0.1, 0.05])
    rows = rows_of(observed, roles=("x", "max_load", "mean_load"))
    assert calibrate(rows).groups[0].best.law.name == "heaviest and mean"


def test_a_constant_mean_load_leaves_one_law_out_and_says_so():
    heavy = np.array([100.0, 90, 120, 80, 95])
    observed = one_group(heavy, 4 + heavy, max_load=heavy, mean_load=np.full(5, 70.0))
    found = calibrate(rows_of(observed, roles=("x", "max_load", "mean_load"))).groups[0]
    assert "heaviest and mean" not in {fit.law.name for fit in found.fits}
    assert any("same mean_load" in note for note in found.notes)


def test_a_row_that_alone_carries_a_slope_cannot_be_left_out():
    fit = fit_law(LAWS["linear"], one_group([1, 1, 1, 5], [2, 3, 4, 9]))
    assert math.isinf(fit.left_out[3])
    assert np.isfinite(fit.left_out[:3]).all()
    assert math.isinf(fit.left_out_error)
    other = fit_law(LAWS["constant"], one_group([1, 1, 1, 5], [2, 3, 4, 9]))
    assert not compare_two(other, fit).told_apart


def test_the_sign_flip_test_tries_all_signs():
    rng = np.random.default_rng(5)
    x = np.linspace(1, 40, 8)
    observed = one_group(x, 50 + 3 * np.log(x) + rng.normal(0, 0.3, 8))
    a, b = fit_law(LAWS["logarithmic"], observed), fit_law(LAWS["linear"], observed)
    found = compare_two(a, b)
    d = b.left_out**2 - a.left_out**2
    sums = np.array([np.dot(signs, d) for signs in product((1, -1), repeat=8)])
    assert found.p_value == pytest.approx(np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12))
    assert (found.low, found.high) == pytest.approx(stats.ttest_1samp(d, 0).confidence_interval())


def test_many_clear_rows_tell_laws_apart_and_five_never_do():
    rng = np.random.default_rng(1)
    x = np.geomspace(1, 400, 60)
    y = 50 + 3 * np.log(x) + rng.normal(0, 0.2, 60)
    found = calibrate(rows_of(one_group(x, y))).groups[0]
    assert found.best.law.name == "logarithmic"
    assert all(one.told_apart for one in found.comparisons)
    few = calibrate(rows_of(one_group(x[::13], y[::13]))).groups[0]
    assert few.observed.y.size == 5
    assert not any(one.told_apart for one in few.comparisons)


def test_a_slope_is_seldom_found_where_there_is_none():
    """Noise alone: the mean predicts left-out rows better than any line does, and the rule may seldom say otherwise."""
    rng = np.random.default_rng(7)
    x = np.linspace(1, 40, 9)
    said = 0
    for _ in range(200):
        observed = one_group(x, 50 + rng.normal(0, 1, 9))
        found = compare_two(fit_law(LAWS["constant"], observed), fit_law(LAWS["linear"], observed))
        said += found.told_apart and found.difference < 0
    assert said <= 10
    exact = one_group(x, np.full(9, 50.0))
    assert not compare_two(fit_law(LAWS["constant"], exact), fit_law(LAWS["linear"], exact)).told_apart


def test_a_held_out_group_by_hand():
    first = one_group([10.0, 20, 40], [1.0, 2, 4])
    other = Observations("h", np.array([7.0, 8.0, 12.0]), {"x": np.array([10.0, 30, 50])}, ("a", "b", "c"), 4)
    line = next(one for one in hold_out(rows_of(first, other), "h") if one.feature == "x")
    assert line.slope == pytest.approx(0.1)  # y = 0.1 x, no intercept
    misses = np.array([1.0, 3, 5]) - other.y
    assert line.level == pytest.approx(np.sqrt(np.mean(misses**2)))
    assert line.level_bias == pytest.approx(misses.mean())
    assert line.anchor == "c"
    assert line.anchored == pytest.approx(np.sqrt(((12 - 4 - 7) ** 2 + (12 - 2 - 8) ** 2) / 2))
    assert line.no_change == pytest.approx(np.sqrt((5**2 + 4**2) / 2))


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([1.0], [2.0], "1 row cannot judge a law of 2 parameters; give at least 3 rows"),
        ([1.0, 2.0], [2.0, 3.0], "2 rows cannot judge a law of 2 parameters; give at least 3 rows"),
        ([4.0, 4.0, 4.0], [1.0, 2.0, 3.0], "all 3 rows have the same x"),
    ],
)
def test_rows_from_which_nothing_can_be_told(x, y, said):
    with pytest.raises(InputError, match=said):
        calibrate(rows_of(one_group(x, y)))


def test_columns_that_follow_from_each_other():
    with pytest.raises(InputError, match="do not vary independently"):
        least_squares(np.column_stack([np.ones(5), np.arange(5.0), 3 - 2 * np.arange(5.0)]), np.arange(5.0))


def test_two_exact_laws_are_not_told_apart_by_their_rounding():
    """A constant response is fitted by every law to the last bit; what is left is no evidence."""
    (group,) = calibrate(rows_of(one_group(np.arange(1.0, 15.0), np.full(14, 5.3)))).groups
    assert not any(one.told_apart for one in group.comparisons)
    assert all(one.p_value == 1 for one in group.comparisons)
