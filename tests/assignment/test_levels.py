"""Samples of the points, and their bounds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment.level import LEAST_PER_CENTRE, RATIO, level_sizes, levels, sample, shares


@given(st.integers(1, 3000), st.data())
def test_a_sample_is_that_many_different_rows_in_order(points, data):
    size = data.draw(st.integers(1, points))
    rows = sample(points, size)
    assert rows.size == size
    assert rows[0] >= 0
    assert rows[-1] < points
    assert (np.diff(rows) > 0).all()


def test_a_sample_is_even_whatever_the_period():
    rows = sample(100_000, 1_000)
    for period in (2, 3, 5, 8, 10, 64, 100, 1_000, 99_999):
        counts = np.bincount(rows * min(period, 20) // period % min(period, 20), minlength=min(period, 20))
        assert counts.max() <= 2 * 1_000 / counts.size


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 5_000))
def test_every_level_can_be_settled(seed, centres, points):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(points, rng.dirichlet(np.ones(centres)))
    lower, upper = rng.integers(0, counts + 1), counts + rng.integers(0, 3, centres) * rng.integers(0, points + 1)
    seen = []
    for rows, low, high in levels(lower, upper, points):
        assert (low >= 0).all()
        assert (low <= high).all()
        assert low.sum() <= rows.size <= high.sum()
        seen.append(rows.size)
    assert seen == level_sizes(points, centres)
    assert seen[-1] == points
    assert seen[0] < RATIO * LEAST_PER_CENTRE * centres or len(seen) == 1
    assert shares(lower, points, points) is lower
