"""Balanced assignment: each of N points to one of K centres, within bounds on their counts, at least total cost.

Algorithm: successive shortest paths on a network of K + 1 nodes (`lbopt.kernels.assignment.moves`), whose arcs keep
their cheapest moves in short lists (`.moves`), from prices that coarser samples gave (`settling`), in exact integers
(`scale`). The linear program of the problem has integral vertices (its matrix is that of a bipartite graph), so its
dual prices prove an assignment of points optimal: `BalancedAssignment.check`. Source: ELDR, section 4 (sub-step of
balanced K-means, Malinen and Franti 2014, who use the Hungarian method on N slots).

Pairs may be forbidden: the network then has no such arcs, and no large cost stands for them. Where no assignment keeps
the bounds, a set of points and centres shows why (`Shortage`).

Costs that do not fit into memory are read by blocks, with few candidates a point, and more where they are missing:

1. All blocks are read once, for the largest cost, which fixes the integer scale, and for a sample of the points, which
   is solved for prices.
2. They are read again, and of each point the few centres that are cheapest under these prices are kept as candidates.
3. The problem of the candidates alone is solved exactly, with prices.
4. The blocks are read once more. A point to which another centre would be cheaper under the prices gets it as one more
   candidate, and step 3 follows again. Where there is none, every point is at its cheapest centre of all: the prices
   prove the answer for the whole problem, as `BalancedAssignment.check` says.

Step 4 is pricing of columns as in Dantzig and Wolfe (1960): columns enter while their reduced costs are negative. If
the candidates alone leave no assignment, the shortage names points that need others; where they have none, it holds
for the whole problem. Memory: some 100 bytes for each point, whatever K is, beside the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import (
    LARGEST_PATH,
    AnyArray,
    CostBlocks,
    Flags,
    Pairs,
    ShortArray,
    exponent_below,
    integers_of,
    largest_cost,
    scaled_pairs,
    split,
    warn_of_lost,
)
from lbopt.assignment.level import (
    Level,
    Room,
    checked_bounds,
    frozen,
    reachable,
    sample,
    scaled_prices,
    settled,
    shares,
)
from lbopt.assignment.result import BalancedAssignment, NoAssignmentError, Shortage
from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import FORBIDDEN, cheaper_elsewhere, keep_cheapest
from lbopt.model.integers import IntArray

#: Entries of a block, and points for each centre of the sample that is solved for the first prices.
BLOCK_ENTRIES, SAMPLE_PER_CENTRE = 1 << 20, 1024

#: Candidates of a point to begin with. With random points in ten dimensions, two more save no round.
FIRST = 4


def assigned_by_blocks(costs: CostBlocks, lower: IntArray, capacity: IntArray, prices: Any) -> BalancedAssignment:
    """Return the assignment of least cost; see `balanced_assignment`.

    Parameters
    ----------
    lower, capacity
        int64 (K,), bounds that have been checked.
    prices
        (K,) reals to start from, or None.
    """
    points, centres = costs.shape
    scaled = _Scaled(costs)
    upper = reachable(capacity, points)
    if prices is None:
        price = _prices_of_sample(scaled, lower, upper)
    else:
        price = scaled_prices(prices, scaled.exponent, centres)
    pairs, room = _first_candidates(scaled, price), Room()
    while True:
        try:
            level = settled(pairs, lower, upper, price, room)
        except NoAssignmentError as error:
            more = _against(scaled, pairs, price, error.shortage)
        else:
            price = level.prices()
            more = _cheaper(scaled, level, price)
        if not (more[0] >= 0).any():
            return frozen(level, scaled.exponent, capacity, lower)
        price = np.clip(price, -LARGEST_PATH, LARGEST_PATH)
        pairs = _with(pairs, *more)


class _Scaled:
    """Costs by blocks in integers of one scale, and those of a sample."""

    def __init__(self, costs: CostBlocks) -> None:
        self._costs = costs
        self.points, self.centres = costs.shape
        self.chosen = sample(self.points, min(self.points, SAMPLE_PER_CENTRE * self.centres))
        largest, kinds, taken = 0.0, set(), []
        for begin, values, allowed in self._read():
            kinds.add(values.dtype.kind == "f")
            ends = (abs(values.min().item()), abs(values.max().item())) if values.size else (0, 0)
            if not all(map(math.isfinite, ends)):
                i, k = np.argwhere(~np.isfinite(values))[0]
                raise InputError(
                    f"the cost of point {begin + i} at centre {k} is {values[i, k]}; expected finite costs: mask a "
                    "pair that must not be used, or give it +inf"
                )
            largest = max(largest, *ends)
            first, last = np.searchsorted(self.chosen, (begin, begin + len(values)))
            own = self.chosen[first:last] - begin
            taken.append((values[own], allowed[own]))
        if len(kinds) > 1:
            raise InputError("some blocks of costs are integers and others reals; expected one kind")
        most = largest_cost(self.points, self.centres)
        self.exponent = exponent_below(largest, most) if True in kinds else None
        if self.exponent is None and largest > most:
            raise InputError(f"a cost is {largest} in size; integer costs of blocks may be at most {most}: divide them")
        self._lost, self._largest = 0, largest
        self.of_sample = np.concatenate([self._integers(*some) for some in taken])
        self._lost = 0

    def blocks(self, rows: IntArray | None = None) -> Iterator[tuple[int, IntArray]]:
        """Yield the first row of each block with its integers; of those alone that hold some of `rows`, if given."""
        for begin, values, allowed in self._read(rows):
            yield begin, self._integers(values, allowed)

    def warn(self) -> None:
        """Warn of costs that were lost in all blocks that have been read."""
        warn_of_lost(self._lost, self.points * self.centres, self._largest, self.exponent or 0)

    def _read(self, rows: IntArray | None = None) -> Iterator[tuple[int, AnyArray, Flags]]:
        step = max(1, BLOCK_ENTRIES // self.centres)
        for begin in range(0, max(self.points, 1), step):
            end = min(begin + step, self.points)
            if rows is None or np.searchsorted(rows, begin) < np.searchsorted(rows, end):
                yield begin, *split(self._costs.rows(begin, end))

    def _integers(self, values: AnyArray, allowed: Flags) -> IntArray:
        if self.exponent is None:
            integers = values.astype(np.int64)
        else:
            flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
            integers = integers_of(flat, self.exponent).reshape(values.shape)
            self._lost += int(((integers == 0) & (values != 0)).sum())
        return integers if allowed.all() else np.where(allowed, integers, FORBIDDEN)


def _prices_of_sample(scaled: _Scaled, lower: IntArray, upper: IntArray) -> IntArray:
    size = scaled.chosen.size
    most = shares(upper, scaled.points, size)
    least = np.minimum(shares(lower, scaled.points, size), most)
    gaps = bool((scaled.of_sample == FORBIDDEN).any())
    if gaps and (scaled.of_sample == FORBIDDEN).all(axis=1).any():
        return np.zeros(scaled.centres, dtype=np.int64)
    level = settled(Pairs.of_matrix(scaled.of_sample, gaps), least, most, None, Room(), coarse=True)
    return np.clip(level.prices(), -LARGEST_PATH, LARGEST_PATH)


def _first_candidates(scaled: _Scaled, price: IntArray) -> Pairs:
    points, most = scaled.points, min(FIRST, scaled.centres)
    start = np.zeros(points + 1, dtype=np.int64)
    centre = np.empty((points, most), dtype=np.int32)
    cost = np.empty((points, most), dtype=np.int64)
    for begin, integers in scaled.blocks():
        own = slice(begin, begin + len(integers))
        keep_cheapest(integers, price, centre[own], cost[own], start[1:][own])
    scaled.warn()
    if (start[1:] == most).all():
        start = np.arange(points + 1, dtype=np.int64) * most
        return Pairs.of_lists(scaled.centres, start, centre.reshape(-1), cost.reshape(-1))
    kept = np.arange(most) < start[1:, None]
    return Pairs.of_lists(scaled.centres, np.cumsum(start), centre[kept], cost[kept])


def _cheaper(scaled: _Scaled, level: Level, price: IntArray) -> tuple[ShortArray, IntArray]:
    """Return for each point a centre that is cheaper than its own under the prices, -1 for none, and its cost there."""
    labels = level.labels()
    centre, cost = np.full(labels.size, -1, dtype=np.int32), np.zeros(labels.size, dtype=np.int64)
    for begin, integers in scaled.blocks():
        own = slice(begin, begin + len(integers))
        if cheaper_elsewhere(integers, price, labels[own], centre[own]):
            cost[own] = np.take_along_axis(integers, np.maximum(centre[own], 0)[:, None], 1)[:, 0]
    return centre, cost


def _against(scaled: _Scaled, pairs: Pairs, price: IntArray, short: Shortage) -> tuple[ShortArray, IntArray]:
    """Return for each point a candidate that mends the shortage, -1 for none, and its cost there.

    Raises
    ------
    NoAssignmentError
        If there is none, so that the shortage is one of the whole problem.
    """
    inside = np.zeros(scaled.centres, dtype=np.bool_)
    inside[short.centres] = True
    wanted = ~inside if short.of == "places" else inside
    if short.of == "places":
        rows = short.points
    else:
        rows = np.setdiff1d(np.arange(scaled.points), short.points, assume_unique=True)
    centre, cost = np.full(scaled.points, -1, dtype=np.int32), np.zeros(scaled.points, dtype=np.int64)
    for begin, integers in scaled.blocks(rows):
        own = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, begin + len(integers))]
        some = integers[own - begin]
        usable = (some != FORBIDDEN) & wanted
        best = np.where(usable, some + price, FORBIDDEN).argmin(axis=1)
        there = usable.any(axis=1)
        centre[own[there]] = best[there]
        cost[own[there]] = some[there, best[there]]
    if not (centre >= 0).any():
        raise NoAssignmentError(short)
    return centre, cost


def _with(pairs: Pairs, centre: ShortArray, cost: IntArray) -> Pairs:
    """Return the pairs and one more for each point whose `centre` is not -1."""
    more: NDArray[np.bool_] = centre >= 0
    at = pairs.start[1:][more]
    start = pairs.start + np.concatenate([[0], np.cumsum(more)])
    return Pairs.of_lists(
        pairs.centres, start, np.insert(pairs.centre, at, centre[more]), np.insert(pairs.cost, at, cost[more])
    )


def balanced_assignment(costs: Any, capacity: Any, *, lower: Any = None, prices: Any = None) -> BalancedAssignment:
    """Assign every point to a centre at least total cost.

    Parameters
    ----------
    costs
        (N, K) integers, or reals that `scale_costs` turns into integers; any sign. A pair that is masked (in a NumPy
        masked array) or costs +infinity is forbidden. `Candidates` and SciPy's sparse arrays hold the pairs that may be
        used, and forbid all others; `CostBlocks` are read a block at a time and never held whole.
    capacity
        Most points of a centre: (K,) integers, or one for all.
    lower
        Fewest points of a centre: (K,) integers, or one for all; none by default.
    prices
        (K,) reals in the unit of the costs to start from, such as those of a similar problem. The total is the same
        whatever they are; good ones save time.

    Raises
    ------
    NoAssignmentError
        An `InputError`: if no assignment of allowed pairs keeps the bounds; its `shortage` proves it.
    InputError
        If costs are NaN, -infinity or too large, shapes do not match, or capacities do not suffice for all points.

    Warns
    -----
    UserWarning
        If costs that are not zero become zero, because others are so large: how many.
    """
    if isinstance(costs, CostBlocks):
        points, centres = costs.shape
        least, most = checked_bounds(capacity, lower, points, centres)
        return assigned_by_blocks(costs, least, most, prices)
    pairs, exponent = scaled_pairs(costs)
    least, most = checked_bounds(capacity, lower, pairs.points, pairs.centres)
    start = None if prices is None else scaled_prices(prices, exponent, pairs.centres)
    return frozen(settled(pairs, least, reachable(most, pairs.points), start, Room()), exponent, most, least)
