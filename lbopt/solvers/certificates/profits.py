"""The best profit of c requests that together fit into a room, for one price vector: exact, or from above.

A request of class k brings profit p_k = scale * size_k - price_k. Single requests are looked up in prefix maxima over
the sorted sizes, sets of two and more in a `CardinalityTable`, in which sizes and rooms are divided by `step` and
rounded down. What fits then still fits (floor(v1/q) + ... <= floor(r/q) follows from v1 + ... <= r), so the table
answers at least from above, and exactly where `step` divides all sizes. It is their greatest common divisor unless the
table would be too large. Where it is more, and where there is no table at all, two more bounds help: the c largest
profits, and scale * room less the c smallest prices.

Numbers are int64 if a bound on every intermediate value, computed in Python integers, says that they fit, and Python
integers in object arrays otherwise.

The table says "exactly c requests, total size at most r, class k at most n_k times: the best profit", for all c and r.
Requests enter one after another in ascending order of size,

    row[c][r] <- max(row[c][r], row[c-1][r - size] + profit),      c descending, so that each request is used once,

and no more than `most` copies of a class can matter. After the sizes up to v, row c is constant from r = c v on, hence
only that much of it is kept: small requests cost next to nothing. The same table after each class, kept on demand, says
what can be had from the classes up to there alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.step import SizeClasses, extreme_total

#: Integers, int64 or object.
Integers = NDArray[Any]

#: Entries that may be kept for the tables after each class.
_KEPT = 25_000_000


class _After(NamedTuple):
    """One row of the table after each class, end to end in one array, and where each begins and ends in it."""

    values: Integers
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class CardinalityTable:
    """Rows 0..most of the table.

    Parameters
    ----------
    sizes, copies
        Size (ascending) and number of requests of each class.
    profits
        Profit of each class, int64 or object, (K,).
    tops
        Largest r that may be asked in each row, not rising.
    none
        Stands for "there is none": so far below every profit that it stays there when `most` profits are added.
    """

    def __init__(self, sizes: list[int], copies: list[int], profits: Integers, tops: list[int], none: int) -> None:
        self._sizes, self._profits, self._tops, self._none = sizes, profits, tops, none
        self._copies = [min(n, len(tops) - 1) for n in copies]
        self._after: list[_After | None] | None = None
        self.rows = self._fill(None)

    def best(self, count: int, rooms: Integers) -> Integers:
        """Return the best profit of `count` requests in each room; rooms beyond the top of the row are cut to it."""
        row = self.rows[count]
        return row[np.minimum(rooms, row.size - 1).astype(np.int64)]

    def best_below(self, count: int, rooms: Integers, until: NDArray[np.int64]) -> Integers:
        """Return the best profits when only the classes below `until`, one number for each room, may be used.

        Without the memory for that, the best profits of all classes, which are not smaller.
        """
        chosen = self._tables_after()[count]
        if chosen is None:
            return self.best(count, rooms)
        last = np.minimum(until, len(self._sizes)) - 1
        start, end = chosen.starts[last], chosen.ends[last]
        place = start + np.minimum(rooms, end - start - 1).astype(np.int64)
        return np.where(last >= 0, chosen.values[place], self._none)

    def _tables_after(self) -> list[_After | None]:
        """Return rows 2..most-1 after each class, computed once; None for a row that is not kept."""
        if self._after is None:
            self._after = [None] * len(self._tops)
            rows = range(2, len(self._tops) - 1)
            if self._sizes and sum(min(c * size, self._tops[c]) + 1 for c in rows for size in self._sizes) <= _KEPT:
                kept: list[list[Integers]] = [[] for _ in self._tops]
                self._fill(kept)
                for c in rows:
                    ends = np.cumsum([row.size for row in kept[c]])
                    self._after[c] = _After(np.concatenate(kept[c]), np.concatenate([[0], ends[:-1]]), ends)
        return self._after

    def _fill(self, kept: list[list[Integers]] | None) -> list[Integers]:
        """Return the rows; a copy of rows 2..most-1 after each class goes to `kept`."""
        heaviest = max(self._sizes, default=0)
        rows = [
            np.full(min(c * heaviest, top) + 1, self._none, self._profits.dtype) for c, top in enumerate(self._tops)
        ]
        rows[0][:] = 0
        filled = [0] * len(rows)
        for k, size in enumerate(self._sizes):
            profit = self._profits[k]
            spend(0)  # a table takes up to a second, and a caller may wait for it
            for c in range(1, len(rows)):
                end = min(c * size, self._tops[c])
                rows[c][filled[c] + 1 : end + 1] = rows[c][filled[c]]
                filled[c] = end
            for _ in range(self._copies[k]):
                for c in range(len(rows) - 1, 0, -1):
                    if size <= filled[c]:
                        target = rows[c][size : filled[c] + 1]
                        np.maximum(target, rows[c - 1][: filled[c] + 1 - size] + profit, out=target)
            if kept is not None:
                for c in range(2, len(rows) - 1):
                    kept[c].append(rows[c][: filled[c] + 1].copy())
        return rows


#: Entries that may be computed for the exact table of one price vector (up to a second), int64 and object.
_TABLE_WORK = {"i": 400_000_000, "O": 1_000_000}
#: Entries that are computed instead where that is not enough.
_COARSE_WORK = {"i": 20_000_000, "O": 100_000}
#: Row operations for one price vector; a problem beyond it gets no table at all.
_ROW_OPERATIONS = 300_000


class BestProfits:
    """Best profits under one price vector.

    Parameters
    ----------
    classes
        The size classes.
    prices
        Price of each class, in units of 1/scale token.
    scale
        Units per token.
    reach
        {c: largest room of a worker with c slots}; nothing else may be asked, but smaller rooms and counts.
    """

    def __init__(self, classes: SizeClasses, prices: list[int], scale: int, reach: dict[int, int]) -> None:
        self.classes, self.prices, self.scale = classes, prices, scale
        self._caps: dict[int, tuple[int, int]] = {}
        self.most = max(reach, default=0)
        pairs = list(zip(classes.sizes, classes.counts, strict=True))
        self._largest = {c: extreme_total(pairs, c, largest=True) for c in reach}
        #: Profit of a request of each class, as Python integers.
        self.own = [scale * size - price for size, price in zip(classes.sizes, prices, strict=True)]
        #: |sum of profits of at most `most` (or 1) requests| and scale * (their total size) are at most this.
        self.magnitude = max(1, self.most) * (scale * max(classes.sizes, default=0) + max(map(abs, prices), default=0))
        self.kind = np.dtype(np.int64 if 16 * (self.magnitude + 1) < 2**63 else object)
        #: Stands for "there is none"; it stays below `none_below` when up to `most` profits are added to it.
        self._none = -4 * (self.magnitude + 1)
        self.none_below = -2 * (self.magnitude + 1)
        self.profits: Integers = np.array(self.own, dtype=self.kind)
        self.sizes: Integers = np.array(classes.sizes, dtype=self.kind)
        #: Classes below this one may follow a first request of each class.
        self.follow = np.array([k + (n > 1) for k, n in enumerate(classes.counts)], dtype=np.int64)
        self._prefix: Integers = np.maximum.accumulate(self.profits) if self.own else self.profits
        self.step = 1
        self._exact_table = False
        self._table = self._build({c: min(room, self._largest[c]) for c, room in reach.items()})

    @property
    def exact(self) -> bool:
        """Whether `upper` is the best profit itself, for every count."""
        return self.most <= 1 or self._exact_table

    def clipped(self, count: int, room: int) -> int:
        """Return a room that holds the same sets of `count` requests and is a number that the arrays can hold."""
        return min(room, self._largest[count])

    def upper(self, count: int, rooms: Integers, until: NDArray[np.int64] | None = None) -> Integers:
        """Return an upper bound on the profit of `count` requests in each room, of classes below `until` if given.

        It is the best profit itself if `exact` and `until` is not given. Rooms are zero or more and `clipped`; where a
        room is too small for any `count` requests, the answer may be below `none_below` or any number.
        """
        if count == 0:
            return np.zeros(rooms.shape, dtype=self.kind)
        if count == 1:
            return self._single(rooms, until)
        if self._table is None:
            return self._capped(count, rooms)
        coarse = rooms // self.step
        best = self._table.best(count, coarse) if until is None else self._table.best_below(count, coarse, until)
        return best if self.exact else np.minimum(best, self._capped(count, rooms))

    def _single(self, rooms: Integers, until: NDArray[np.int64] | None) -> Integers:
        place = np.searchsorted(self.sizes, rooms, side="right") - 1
        if until is not None:
            place = np.minimum(place, until - 1)
        return np.where(place >= 0, self._prefix[np.maximum(place, 0)], self._none)

    def _capped(self, count: int, rooms: Integers) -> Integers:
        """Bound the profit by the `count` largest profits, and by scale * room less the `count` smallest prices."""
        if count not in self._caps:
            counts = self.classes.counts
            profits = list(zip(self.own, counts, strict=True))
            prices = list(zip(self.prices, counts, strict=True))
            self._caps[count] = (
                extreme_total(profits, count, largest=True),
                extreme_total(prices, count, largest=False),
            )
        most, least = self._caps[count]
        bound: Integers = np.minimum(rooms * self.scale - least, most)
        return bound

    def _build(self, reach: dict[int, int]) -> CardinalityTable | None:
        """Return the table, each row as far as a worker with that many slots or more can ask; None if too much work."""
        widest = max((room for c, room in reach.items() if c >= 2), default=-1)
        sizes = [size for size in self.classes.sizes if size <= widest]
        counts = list(self.classes.counts[: len(sizes)])
        copies = [min(n, self.most) for n in counts]
        if self.most < 2 or self.most * max(1, sum(copies)) > _ROW_OPERATIONS:
            return None
        rooms = [max((room for c, room in reach.items() if c >= count), default=0) for count in range(self.most + 1)]
        self.step = math.gcd(*sizes) or 1
        work = self._work(sizes, copies, rooms)
        self._exact_table = work <= _TABLE_WORK[self.kind.kind]
        if not self._exact_table:
            self.step *= 1 + work // _COARSE_WORK[self.kind.kind]
            work = _COARSE_WORK[self.kind.kind]
        spend(100 + (work // 1_000 if self.kind.kind == "i" else work // 10))
        coarse, tops = [size // self.step for size in sizes], [room // self.step for room in rooms]
        return CardinalityTable(coarse, counts, self.profits, tops, self._none)

    def _work(self, sizes: list[int], copies: list[int], rooms: list[int]) -> int:
        """Return about how many entries of the table would be computed with the present step."""
        sizes, rooms = [size // self.step for size in sizes], [room // self.step for room in rooms]
        work = sum(min(room, c * max(sizes, default=0)) + 1 for c, room in enumerate(rooms))
        for size, n in zip(sizes, copies, strict=True):
            work += n * sum(max(0, min(room, c * size) - size + 1) for c, room in enumerate(rooms) if c)
        return work
