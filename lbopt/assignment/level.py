"""One level of a balanced assignment: some of the points, labelled under given prices, then settled exactly.

From integer costs and bounds to settled points and their proof: by coarse levels, or prices of a similar problem.

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

from lbopt.assignment.costs import LARGEST_PATH, Pairs
from lbopt.assignment.result import BalancedAssignment, NoAssignmentError, Shortage
from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import OPEN, STUCK, UNREACHED, Centres, Moves, Points
from lbopt.kernels.assignment.moves import label_cheapest, list_first, settle, total_cost
from lbopt.model.integers import IntArray, integer_array

#: Steps between two looks at the keyboard, a fraction of a second.
_STEPS = 1 << 24

#: Lists are so many times the square root of points per centre long.
_LENGTH = 1.0

#: The first slack: among so many margins the one that so many points a path undercut, at most such a share of all. Half
#: or twice as many make no difference to speak of, and nor does half or twice the length of the lists.
_SAMPLE, _MOVES, _MOST_SHARE = 1024, 16, 0.5

#: Coarser levels leave some sqrt(n * K) paths; up to so many times that, prices of a round before are as good a start:
#: paths from there are short. Of no account with few centres, a tenth to a quarter of the time with a thousand.
_WORTH = 2


class Room:
    """Memory that levels take one after the other: given back, it would come anew page by page, which takes longer.

    A level that still looks for paths must be the only one that has taken from it.
    """

    def __init__(self) -> None:
        self._taken: dict[str, NDArray[Any]] = {}

    def take(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
        """Return an array with whatever is in it."""
        size = math.prod(shape)
        if name not in self._taken or self._taken[name].size < size:
            self._taken[name] = np.empty(size, dtype=kind)
        return self._taken[name][:size].reshape(shape)


class Level:
    """The points in `rows`, all at their cheapest centres under `prices` to begin with."""

    def __init__(
        self,
        pairs: Pairs,
        rows: IntArray,
        lower: IntArray,
        upper: IntArray,
        prices: IntArray,
        room: Room | None = None,
    ) -> None:
        centres = upper.size
        self._room, self._pairs = room or Room(), pairs
        start = np.where(lower == 0, np.maximum(prices, 0), prices)
        held = np.empty(centres, dtype=np.int64)
        self._margin = np.empty(rows.size, dtype=np.int64)
        self._points = Points(
            costs=pairs.costs,
            start=pairs.start,
            centre=pairs.centre,
            cost=pairs.cost,
            rows=rows,
            labels=np.empty(rows.size, dtype=np.int32),
        )
        label_cheapest(self._points, start, upper, held, self._margin)
        flow = np.where(start > 0, upper, np.where(start < 0, lower, np.clip(held, lower, upper)))
        excess = np.append(held - flow, flow.sum() - rows.size)
        self._centres = Centres(
            lower=np.array(lower),
            upper=np.array(upper),
            flow=flow,
            excess=excess,
            price=np.append(start, 0),
            distance=np.empty(centres + 1, dtype=np.int64),
            before=np.zeros(centres + 1, dtype=np.int64),
            ahead=np.empty(centres + 1, dtype=np.int64),
            scanned=np.empty(centres + 1, dtype=np.int64),
            settled=np.empty(centres + 1, dtype=np.int64),
        )

    @property
    def paths_left(self) -> int:
        """How many units are where they should not be."""
        return int(np.maximum(self._centres.excess, 0).sum())

    @property
    def nearly_done(self) -> bool:
        """Whether coarser levels would leave so many paths to find that they are not worth their own."""
        return self.paths_left**2 <= _WORTH**2 * self._points.rows.size * self._centres.flow.size

    def settle(self, coarse: bool = False) -> IntArray:
        """Find the optimum of this level, and return its prices.

        Parameters
        ----------
        coarse
            Whether the level is a sample, whose bounds in proportion may leave no way where pairs are forbidden: what
            finds none stays where it is, and prices are as good as they get.

        Raises
        ------
        NoAssignmentError
            If some points find no way and the level is no sample.
        """
        if self.paths_left == 0:
            return self.prices()
        length = max(1, round(_LENGTH * math.sqrt(self._points.rows.size / self._centres.flow.size)))
        moves = no_moves(self._centres.price[:-1], self._margin, length, self._slack(), self._room, self._pairs.gaps)
        list_first(self._points, moves, self._centres.price)
        while (ended := settle(self._points, self._centres, moves, _STEPS)) in (OPEN, STUCK):  # here Ctrl-C is heard
            if ended == STUCK and not coarse:
                raise NoAssignmentError(self._shortage())
            if ended == STUCK:
                stuck = int((self._centres.excess > 0).argmax())
                self._centres.excess[stuck] = 0
        return self.prices()

    def labels(self) -> IntArray:
        """(n,) the centre of each point."""
        return self._points.labels.astype(np.int64)

    def prices(self) -> IntArray:
        """(K,) prices, zero at centres that are neither full nor at their lower bound."""
        price: IntArray = self._centres.price
        above: IntArray = price[:-1] - price[-1]
        return above

    def counts(self) -> IntArray:
        """(K,) points at each centre."""
        return np.bincount(self._points.labels, minlength=self._centres.flow.size)

    def total(self) -> int:
        """Sum of the costs."""
        return int(total_cost(self._points))

    def _shortage(self) -> Shortage:
        """Return the cut that the last search left: what it reached has too much, and no arc leads out of it."""
        reached = self._centres.distance == UNREACHED
        labels, inside = self._points.labels, reached[:-1]
        if not reached[-1]:  # the pool is out of reach: all that was reached is full
            points = np.flatnonzero(inside[labels])
            centres = np.flatnonzero(inside)
            places = sum(self._centres.upper[centres].tolist())
            return Shortage("places", self._points.rows[points], centres, places, points.size)
        points = np.flatnonzero(~inside[labels])
        centres = np.flatnonzero(~inside)
        needed = sum(self._centres.lower[centres].tolist())
        return Shortage("points", self._points.rows[points], centres, points.size, needed)

    def _slack(self) -> int:
        """Return a margin that so many points undercut as are likely to move."""
        points, centres = self._points.rows.size, self._centres.flow.size
        if centres == 1 or points == 0:
            return 0
        seen = self._margin[:: -(-points // _SAMPLE)]
        share = min(_MOST_SHARE, _MOVES * self.paths_left / points)
        # a point with one candidate alone has a margin without bound; the slack doubles later and must not overflow
        return min(int(np.sort(seen)[int(share * (seen.size - 1))]), UNREACHED)


def no_moves(
    price: IntArray, margin: IntArray, length: int, slack: int, room: Room | None = None, gaps: bool = False
) -> Moves:
    """Return room for the lists of all pairs of centres, none of them made yet.

    Parameters
    ----------
    price, margin, slack
        The first prices, (K,); and `margin`, (n,), and the first `slack` as in `Moves`.
    room
        Where the lists are kept; room of their own by default.
    gaps
        Whether any pair is forbidden.
    """
    room = room or Room()
    centres = price.size
    pairs = (centres, centres)
    return Moves(
        nearest=room.take("nearest", pairs, np.int32),
        least=room.take("least", pairs, np.int64),
        bound=room.take("bound", pairs, np.int64),
        first=room.take("first", pairs, np.int32),
        stop=room.take("stop", pairs, np.int32),
        point=room.take("point", (*pairs, length), np.int32),
        difference=room.take("difference", (*pairs, length), np.int64),
        slack=np.full(centres, slack, dtype=np.int64),
        since=np.empty(centres, dtype=np.int64),
        margin=margin,
        origin=price.copy(),
        ways=np.zeros(pairs if gaps else (0, 0), dtype=np.int64),
    )


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
