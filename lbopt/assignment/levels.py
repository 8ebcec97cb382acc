"""Coarse to fine: samples of the points, with capacities in proportion, whose prices start the next finer level.

Prices found on n points leave some sqrt(N K / n) points per hundred too many or too few at the centres of the whole, and
every one of those costs a shortest path. So levels that grow by a factor of four have as many paths each, up to a factor
of two, and all of them together far fewer than the whole would have from nothing.

A sample takes the rows (p * q) mod N with q near the golden ratio of N and coprime to it: evenly spread, and in step
with no period that the order of the points may have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from lbopt.model.integers import IntArray

#: Points of a level for one of the level below.
RATIO = 4

#: The coarsest level has at least so many points for each centre.
LEAST_PER_CENTRE = 16


def level_sizes(points: int, centres: int) -> list[int]:
    """Return the numbers of points of all levels, coarsest first; the last is `points`."""
    sizes = [points]
    while sizes[0] // RATIO >= LEAST_PER_CENTRE * centres:
        sizes.insert(0, sizes[0] // RATIO)
    return sizes


def sample(points: int, size: int) -> IntArray:
    """Return `size` different rows of 0..points-1, ascending."""
    if size == points:
        return np.arange(points, dtype=np.int64)
    step = max(1, round(points * (math.sqrt(5) - 1) / 2))
    while math.gcd(step, points) > 1:
        step += 1
    return np.sort(np.arange(size, dtype=np.int64) * step % points)


def shares(bounds: IntArray, points: int, size: int) -> IntArray:
    """Return bounds of a sample, in proportion: integers whose every leading sum is rounded down."""
    if size == points:
        return bounds
    return np.diff(np.cumsum(bounds) * size // points, prepend=0)


def levels(lower: IntArray, upper: IntArray, points: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield the rows, lower and upper bounds of each level, coarsest first."""
    for size in level_sizes(points, lower.size):
        most = shares(upper, points, size)
        yield sample(points, size), np.minimum(shares(lower, points, size), most), most
