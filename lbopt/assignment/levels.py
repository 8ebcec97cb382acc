"""Coarse to fine: samples of the points, with capacities in proportion, whose prices start the next finer level.

Prices that are exact for n of N points leave about 0.4 N sqrt(K / n) points at centres that have no room for them, and
each of these costs a shortest path. So a level four times as large as the one before has some 0.6 sqrt(N K) paths to
find, and the one before half as many: few against the share of N, a third or so, that is in excess at prices of zero.

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
LEAST_PER_CENTRE = 2


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
