"""Student intervals over seeds and over batches of steps, against SciPy and against arithmetic by hand."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import lbopt
from lbopt.simulator.metrics import batch_interval
from lbopt.statistics import (
    CONFIDENCE,
    batch_ratios,
    half_width,
    interval_around,
    over_seeds,
    standard_error,
    student_quantile,
)


@pytest.mark.parametrize("values", [[1.0, 2.0], [3.0, 3.0, 3.0], [-5.0, 0.25, 7.5, 1e6], list(range(30))])
def test_over_seeds_is_the_student_interval_of_scipy(values):
    """Mean and 95 % interval are those of scipy.stats.t."""
    found = over_seeds(values)
    assert found.mean == pytest.approx(np.mean(values))
    if np.std(values) == 0:
        assert found.low == found.high == found.mean
        return
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_one_seed_has_no_interval():
    """One value has a mean and no interval, rather than one of width zero."""
    found = over_seeds([4.0])
    assert (found.mean, found.low, found.high) == (4.0, None, None)


def test_batch_interval_is_the_student_interval_of_twenty_batches():
    """The interval is that of the 20 batch means, around the ratio of the whole."""
    rng = np.random.default_rng(3)
    top, bottom = rng.integers(0, 50, 437), rng.random(437) + 0.5
    used = 437 // 20 * 20
    ratios = [sum(t) / sum(b) for t, b in zip(top[-used:].reshape(20, -1), bottom[-used:].reshape(20, -1), strict=True)]
    centre = top.sum() / bottom.sum()
    half = stats.t.ppf(0.975, 19) * stats.sem(ratios)
    assert batch_interval(top, bottom) == pytest.approx((centre - half, centre + half))


def test_batch_interval_needs_two_steps_a_batch():
    """39 steps give no interval, 40 do."""
    assert batch_interval(np.arange(39), np.ones(39)) is None
    assert batch_interval(np.arange(40), np.ones(40)) is not None


@pytest.mark.parametrize("degrees", [1, 2, 4, 9, 19, 49, 7.5, 1e4])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99, 0.9999])
def test_quantiles_are_those_of_scipy_to_the_last_digit(degrees, confidence):
    """Stored studies were made with `scipy.stats.t.ppf`, and have to come out again to every digit."""
    assert student_quantile(degrees, confidence) == float(stats.t.ppf(0.5 + confidence / 2, degrees))
    assert student_quantile(None, confidence) == float(stats.norm.ppf(0.5 + confidence / 2))


def test_half_a_width_is_the_quantile_times_the_standard_error():
    """Quantile times spread over root, in this order: another order moves the last digit of stored numbers."""
    values = np.random.default_rng(5).lognormal(size=17)
    assert half_width(values) == stats.t.ppf(0.975, 16) * values.std(ddof=1) / 17**0.5
    assert half_width(values, 0.8) == pytest.approx(student_quantile(16, 0.8) * standard_error(values))
    assert standard_error(values) == pytest.approx(stats.sem(values))
    assert interval_around(3.0, values) == (3.0 - half_width(values), 3.0 + half_width(values))


def test_intervals_cover_as_often_as_they_say():
    """Of 4,000 means of five normal values about 95 % of the intervals hold the true mean."""
    drawn = np.random.default_rng(11).normal(2.0, 3.0, (4000, 5))
    held = [abs(values.mean() - 2.0) <= half_width(values) for values in drawn]
    assert np.mean(held) == pytest.approx(CONFIDENCE, abs=0.012)


def test_batches_drop_what_is_left_over_from_the_start():
    """Seven entries in three batches: the first entry is dropped."""
    top, bottom = np.array([99, 1, 3, 5, 7, 9, 11]), np.array([1, 1, 1, 2, 2, 1, 1])
    assert batch_ratios(top, bottom, 3).tolist() == [2.0, 3.0, 10.0]
    assert batch_ratios(top[:5], bottom[:5], 3) is None


def test_confidence_and_the_quantile_are_written_once():
    """Two definitions could drift apart, and intervals of two rooms would no longer compare."""
    files = {path: path.read_text(encoding="utf-8") for path in Path(lbopt.__file__).parent.rglob("*.py")}
    written = {
        pattern: [path.name for path, text in files.items() if re.search(pattern, text, re.MULTILINE)]
        for pattern in (r"^CONFIDENCE\b.* = ", r"\bstdtrit\b", r"\bt\.ppf\b")
    }
    assert list(written.values()) == [["statistics.py"], ["statistics.py"], []]
