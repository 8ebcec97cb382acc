"""Student intervals over seeds and over batches of steps, against SciPy and against arithmetic by hand."""

import numpy as np
import pytest
from scipy import stats

from lbopt.simulator.metrics import batch_interval
from lbopt.studies.intervals import over_seeds


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
