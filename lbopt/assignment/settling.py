"""From integer costs and bounds to settled points and their proof: by coarse levels, or prices of a similar problem.

Coarse to fine: samples of the points, with capacities in proportion, whose prices start the next finer level. Prices
that are exact for n of N points leave about 0.4 N sqrt(K / n) points at centres that have no room for them, and each of
these costs a shortest path. So a level four times as large as the one before has some 0.6 sqrt(N K) paths to find, and
the one before half as many: few against the share of N, a third or so, that is in excess at prices of zero.

A sample takes the rows (p * q) mod N with q near the golden ratio of N and coprime to it: evenly spread, and in step
with no period that the order of the points may have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import Pairs
from lbopt.assignment.level import Level, Room
from lbopt.assignment.result import BalancedAssignment, NoAssignmentError, Shortage
from lbopt.assignment.scale import LARGEST_PATH
from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array


def checked_bounds(capacity: Any, lower: Any, points: int, centres: int) -> tuple[IntArray, IntArray]:
    """Return lower bounds and capacities, both (K,) int64 and read-only, that some assignment keeps.

    Parameters
    ----------
    capacity
        Most points of each centre: one number for all, or (K,).
    lower
        Fewest points of each centre: one number, (K,), or None for none.

    Raises
    ------
    InputError
        On wrong shapes, negative or fractional entries, lower bounds above capacities, capacities that do not suffice,
        lower bounds that need more points than there are.
    """
    most = _one_each("capacity", capacity, centres)
    least = _one_each("lower", 0 if lower is None else lower, centres)
    above = np.flatnonzero(least > most)
    if above.size:
        k = int(above[0])
        raise InputError(f"lower[{k}] is {least[k]}, above capacity[{k}] = {most[k]}; expected at most that")
    room, needed = sum(most.tolist()), sum(least.tolist())
    if room < points:
        raise InputError(
            f"the capacities add up to {room}, and there are {points} points: {points - room} too few; with {centres} "
            f"centres a capacity of {-(-points // centres)} each would do"
        )
    if needed > points:
        raise InputError(
            f"the lower bounds add up to {needed}, and there are {points} points: {needed - points} too many"
        )
    return least, most


def _one_each(name: str, values: Any, centres: int) -> IntArray:
    given = integer_array(name, values, ndim=(0, 1))
    if given.ndim == 0:
        given = np.full(centres, given, dtype=np.int64)
        given.flags.writeable = False
    if given.shape != (centres,):
        raise InputError(
            f"{name} must be one number or have shape ({centres},), one for each centre; its shape is {given.shape}"
        )
    return given


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


def settled(
    pairs: Pairs, lower: IntArray, upper: IntArray, prices: IntArray | None, room: Room, coarse: bool = False
) -> Level:
    """Return all points settled: from `prices` at once if they are good, else by way of coarser levels.

    Parameters
    ----------
    lower, upper
        int64, (K,): fewest and most points of each centre.
    prices
        int64, (K,): prices to start from; None starts from zero on coarser levels.
    room
        Scratch arrays, changed in place.
    coarse
        Whether the points are a sample themselves, as in `Level.settle`.

    Raises
    ------
    NoAssignmentError
        If no assignment of allowed pairs keeps the bounds.
    """
    points, centres = pairs.points, pairs.centres
    nowhere = pairs.nowhere()
    if nowhere is not None:
        raise NoAssignmentError(Shortage("places", np.array([nowhere]), np.empty(0, dtype=np.int64), 0, 1))
    if prices is None:
        prices = np.zeros(centres, dtype=np.int64)
    else:
        level = Level(pairs, np.arange(points, dtype=np.int64), lower, upper, prices, room)
        if level.nearly_done:
            level.settle(coarse)
            return level
    for rows, low, high in levels(lower, upper, points):
        level = Level(pairs, rows, low, high, prices, room)
        # any start is right; this one cannot overflow
        prices = np.clip(level.settle(coarse or rows.size < points), -LARGEST_PATH, LARGEST_PATH)
    return level


def reachable(capacity: IntArray, points: int) -> IntArray:
    """Return capacities that all points together can exceed by one: a centre with room to spare is then never full."""
    return np.minimum(capacity, points + 1)


def scaled_prices(prices: Any, exponent: int | None, centres: int) -> IntArray:
    """Return starting prices in integers: any will do, so they are cut to what differences of costs can make."""
    try:
        given = np.asarray(prices, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("prices must be an array of numbers, one for each centre") from None
    if given.shape != (centres,):
        raise InputError(f"prices must have shape ({centres},), one for each centre; its shape is {given.shape}")
    if not np.isfinite(given).all():
        k = int(np.flatnonzero(~np.isfinite(given))[0])
        raise InputError(f"prices[{k}] is {given[k]}; expected a finite price")
    with np.errstate(over="ignore"):  # infinity is cut, too
        scaled: IntArray = np.rint(np.clip(np.ldexp(given, exponent or 0), -LARGEST_PATH, LARGEST_PATH)).astype(
            np.int64
        )
    return scaled


def frozen(solved: Level, exponent: int | None, capacity: IntArray, lower: IntArray) -> BalancedAssignment:
    """Return the answer with prices that prove it.

    Parameters
    ----------
    exponent
        Of the scale of the costs; None for integers.
    capacity, lower
        int64 (K,), the bounds that were asked for.
    """
    labels, scaled = solved.labels(), solved.prices()
    total = solved.total()
    scaled[(solved.counts() == 0) & (scaled < 0)] = (
        0  # no point pays it, and at a higher price no point would choose the centre
    )
    with np.errstate(over="ignore"):
        prices: NDArray[np.float64] = np.ldexp(scaled.astype(np.float64), -(exponent or 0))
    for array in (labels, scaled, prices):
        array.flags.writeable = False
    try:
        cost = float(total) if exponent is None else math.ldexp(total, -exponent)
    except OverflowError:  # costs near the end of float64 may have a total beyond it; `scaled_cost` is exact
        cost = math.copysign(math.inf, total)
    return BalancedAssignment(
        labels=labels,
        cost=cost,
        prices=prices,
        scaled_cost=total,
        scaled_prices=scaled,
        exponent=exponent,
        capacity=capacity,
        lower=lower,
    )
