"""From integer costs to settled points and their proof: coarse levels first, or the prices of a similar problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.level import Level, Room
from lbopt.assignment.levels import levels
from lbopt.assignment.pairs import Pairs
from lbopt.assignment.result import BalancedAssignment
from lbopt.assignment.scale import LARGEST_PATH
from lbopt.assignment.shortage import NoAssignmentError, Shortage
from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray


def settled(
    pairs: Pairs, lower: IntArray, upper: IntArray, prices: IntArray | None, room: Room, coarse: bool = False
) -> Level:
    """Return all points settled: from `prices` at once if they are good, else by way of coarser levels.

    Parameters
    ----------
    pairs
        Costs of points at centres.
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
    solved
        All points, settled.
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
