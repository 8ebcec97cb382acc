"""Balanced assignment: each of N points to one of K centres, within bounds on their counts, at least total cost.

Algorithm: successive shortest paths on a network of K + 1 nodes (`lbopt.kernels.assignment.paths`), whose arcs keep
their cheapest moves in short lists (`.moves`), from prices that coarser samples gave (`levels`), in exact integers
(`scale`). The linear program of the problem has integral vertices (its matrix is that of a bipartite graph), so its
dual prices prove an assignment of points optimal: `BalancedAssignment.check`. Source: ELDR, section 4 (sub-step of
balanced K-means, Malinen and Franti 2014, who use the Hungarian method on N slots).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.bounds import checked_bounds
from lbopt.assignment.level import Level, Room
from lbopt.assignment.levels import levels
from lbopt.assignment.result import BalancedAssignment
from lbopt.assignment.scale import LARGEST_PATH, scale_costs
from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray


def balanced_assignment(costs: Any, capacity: Any, *, lower: Any = None, prices: Any = None) -> BalancedAssignment:
    """Assign every point to a centre at least total cost.

    Parameters
    ----------
    costs
        (N, K) integers, or reals that `scale_costs` turns into integers; any sign.
    capacity
        Most points of a centre: (K,) integers, or one for all.
    lower
        Fewest points of a centre: (K,) integers, or one for all; none by default.
    prices
        (K,) reals in the unit of the costs to start from, such as those of a similar problem. The total is the same
        whatever they are; good ones save time.

    Raises
    ------
    InputError
        If costs are not finite numbers or too large, shapes do not match, or no assignment keeps the bounds.
    """
    integers, exponent = scale_costs(costs)
    points, centres = integers.shape
    least, most = checked_bounds(capacity, lower, points, centres)
    start = None if prices is None else _scaled_prices(prices, exponent, centres)
    upper = np.minimum(most, points + 1)  # the one more keeps a centre that has room to spare from being full
    return _frozen(settled(integers, least, upper, start, Room()), exponent, most, least)


def settled(costs: IntArray, lower: IntArray, upper: IntArray, prices: IntArray | None, room: Room) -> Level:
    """Return all points settled: from `prices` at once if they are good, else by way of coarser levels.

    Parameters
    ----------
    costs
        int64, (N, K): cost of each point at each centre.
    lower, upper
        int64, (K,): fewest and most points of each centre.
    prices
        int64, (K,): prices to start from; None starts from zero on coarser levels.
    room
        Scratch arrays, changed in place.
    """
    points, centres = costs.shape
    if prices is None:
        prices = np.zeros(centres, dtype=np.int64)
    else:
        level = Level(costs, np.arange(points, dtype=np.int64), lower, upper, prices, room)
        if level.nearly_done:
            level.settle()
            return level
    for rows, low, high in levels(lower, upper, points):
        level = Level(costs, rows, low, high, prices, room)
        prices = np.clip(level.settle(), -LARGEST_PATH, LARGEST_PATH)  # any start is right; this one cannot overflow
    return level


def _scaled_prices(prices: Any, exponent: int | None, centres: int) -> IntArray:
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


def _frozen(solved: Level, exponent: int | None, capacity: IntArray, lower: IntArray) -> BalancedAssignment:
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
