"""The best profit of c requests that together fit into a room, for one price vector: exact, or from above.

A request of class k brings profit p_k = scale * size_k - price_k. Single requests are looked up in prefix maxima over
the sorted sizes, sets of two and more in a table, in which sizes and rooms are divided by `step` and rounded down. What
fits then still fits (floor(v1/q) + ... <= floor(r/q) follows from v1 + ... <= r), so the table answers at least from
above, and exactly where `step` divides all sizes. It is their greatest common divisor unless the table would be too
large. Where it is more, and where there is no table at all, two more bounds help: the c largest profits, and
scale * room less the c smallest prices.

Numbers are int64 if a bound on every intermediate value, computed in Python integers, says that they fit, and Python
integers in object arrays otherwise.

The table says "exactly c requests, total size at most r, class k at most n_k times: the best profit", for all c and r.
Requests enter one after another in ascending order of size,

    row[c][r] <- max(row[c][r], row[c-1][r - size] + profit),      c descending, so that each request is used once,

and no more than `most` copies of a class can matter. After the sizes up to v, row c is constant from r = c v on, hence
only that much of it is kept: small requests cost next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.allowance import spend

#: Integers, int64 or object.
Integers = NDArray[Any]

#: Entries that may be computed for the exact table of one price vector (up to a second), int64 and object.
_TABLE_WORK = {"i": 400_000_000, "O": 1_000_000}
#: Entries that are computed instead where that is not enough.
_COARSE_WORK = {"i": 20_000_000, "O": 100_000}
#: Row operations for one price vector; a problem beyond it gets no table at all.
_ROW_OPERATIONS = 300_000


@dataclass(frozen=True, slots=True)
class SizeClasses:
    """The requests by (size, forced): sizes ascending, of equal sizes the class that may wait before the forced one."""

    sizes: tuple[int, ...]
    forced: tuple[bool, ...]
    counts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sizes)


def extreme_total(values: list[tuple[int, int]], count: int, *, largest: bool) -> int:
    """Return the largest or smallest total of `count` items; `values` holds (value, how many there are)."""
    total = 0
    for value, available in sorted(values, reverse=largest):
        taken = min(available, count)
        total += taken * value
        count -= taken
        if not count:
            break
    return total


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
        #: Stands for "there is none"; it stays below every profit when up to `most` profits are added to it.
        self._none = -4 * (self.magnitude + 1)
        self._sizes: Integers = np.array(classes.sizes, dtype=self.kind)
        profits: Integers = np.array(self.own, dtype=self.kind)
        self._prefix: Integers = np.maximum.accumulate(profits) if self.own else profits
        self._step = 1
        #: Whether `upper` is the best profit itself, for every count.
        self.exact = self.most <= 1
        self._rows = self._table({c: min(room, self._largest[c]) for c, room in reach.items()}, profits)

    def clipped(self, count: int, room: int) -> int:
        """Return a room that holds the same sets of `count` requests and is a number that the arrays can hold."""
        return min(room, self._largest[count]) if count else room

    def upper(self, count: int, rooms: list[int]) -> list[int]:
        """Return an upper bound on the profit of `count` requests in each room, the best profit itself if `exact`.

        Rooms are zero or more and `clipped`; where a room is too small for any `count` requests, the answer may be any
        number.
        """
        if count == 0:
            return [0] * len(rooms)
        held: Integers = np.array(rooms, dtype=self.kind)
        if count == 1:
            place = np.searchsorted(self._sizes, held, side="right") - 1
            single: list[int] = np.where(place >= 0, self._prefix[np.maximum(place, 0)], self._none).tolist()
            return single
        bound = None if self.exact else self._capped(count, held)
        if self._rows is not None:
            row = self._rows[count]
            best = row[np.minimum(held // self._step, row.size - 1).astype(np.int64)]
            bound = best if bound is None else np.minimum(best, bound)
        assert bound is not None, "what is exact has a table"
        answer: list[int] = bound.tolist()
        return answer

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

    def _table(self, reach: dict[int, int], profits: Integers) -> list[Integers] | None:
        """Return the rows, each as far as a worker with that many slots or more can ask; None if too much work."""
        widest = max((room for c, room in reach.items() if c >= 2), default=-1)
        sizes = [size for size in self.classes.sizes if size <= widest]
        copies = [min(n, self.most) for n in self.classes.counts[: len(sizes)]]
        if self.most < 2 or self.most * max(1, sum(copies)) > _ROW_OPERATIONS:
            return None
        rooms = [max((room for c, room in reach.items() if c >= count), default=0) for count in range(self.most + 1)]
        self._step = math.gcd(*sizes) or 1
        work = self._work(sizes, copies, rooms)
        self.exact = work <= _TABLE_WORK[self.kind.kind]
        if not self.exact:
            self._step *= 1 + work // _COARSE_WORK[self.kind.kind]
            work = _COARSE_WORK[self.kind.kind]
        spend(100 + (work // 1_000 if self.kind.kind == "i" else work // 10))
        tops = [room // self._step for room in rooms]
        heaviest = max(sizes, default=0) // self._step
        rows = [np.full(min(c * heaviest, top) + 1, self._none, self.kind) for c, top in enumerate(tops)]
        rows[0][:] = 0
        filled = [0] * len(rows)
        for size, n, profit in zip((size // self._step for size in sizes), copies, profits, strict=False):
            spend(0)  # a table takes up to a second, and a caller may wait for it
            for c in range(1, len(rows)):
                end = min(c * size, tops[c])
                rows[c][filled[c] + 1 : end + 1] = rows[c][filled[c]]
                filled[c] = end
            for _ in range(n):
                for c in range(len(rows) - 1, 0, -1):
                    if size <= filled[c]:
                        target = rows[c][size : filled[c] + 1]
                        np.maximum(target, rows[c - 1][: filled[c] + 1 - size] + profit, out=target)
        return rows

    def _work(self, sizes: list[int], copies: list[int], rooms: list[int]) -> int:
        """Return about how many entries of the table would be computed with the present step."""
        sizes, rooms = [size // self._step for size in sizes], [room // self._step for room in rooms]
        work = sum(min(room, c * max(sizes, default=0)) + 1 for c, room in enumerate(rooms))
        for size, n in zip(sizes, copies, strict=True):
            work += n * sum(max(0, min(room, c * size) - size + 1) for c, room in enumerate(rooms) if c)
        return work
