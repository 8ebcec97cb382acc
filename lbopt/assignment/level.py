"""One level of a balanced assignment: some of the points, labelled under given prices, then settled exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import Pairs
from lbopt.assignment.result import NoAssignmentError, Shortage
from lbopt.kernels.assignment.moves import label_cheapest, list_first, total_cost
from lbopt.kernels.assignment.paths import settle
from lbopt.kernels.assignment.state import OPEN, STUCK, UNREACHED, Centres, Moves, Points
from lbopt.model.integers import IntArray

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
