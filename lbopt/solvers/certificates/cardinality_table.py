"""The table "exactly c requests, total size at most r, class k at most n_k times: the best profit", for all c and r.

Requests enter one after another in ascending order of size,

    row[c][r] <- max(row[c][r], row[c-1][r - size] + profit),      c descending, so that each request is used once,

and no more than `most` copies of a class can matter. After the sizes up to v, row c is constant from r = c v on, hence
only that much of it is kept: small requests cost next to nothing. The same table after each class, kept on demand, says
what can be had from the classes up to there alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.allowance import spend

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
            spend(0)  # a table takes up to a second, and somebody may wait for it
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
