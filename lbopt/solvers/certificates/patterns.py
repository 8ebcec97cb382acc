"""The patterns of a worker in order of falling profit, found one after another and only as far as they are asked for.

A pattern is a multiset of classes, written in descending order, that fills all free slots of a worker and fits into its
room. Best-first search: a partial pattern of some largest classes waits in a heap under an upper bound of what it can
become (its profit so far, and the best profit of the requests still missing in the room that is left), so complete
patterns leave the heap in order of profit, and none is left out: every pattern has exactly one parent, its own largest
part. The upper bound knows that the classes to come are at most the last one, and below it where its copies are used
up; it may be too high where copies of a class are used in part, where the table is coarse or where memory does not
allow tables after each class. That costs time, not truth.

The best profit of a pattern for each worker, and what prices leave spare, are known exactly or from above.
"""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import groupby
from typing import NamedTuple

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.profits import BestProfits


class Found(NamedTuple):
    """A pattern with its profit and how many copies of which classes it needs."""

    profit: int
    pattern: tuple[int, ...]
    needs: tuple[tuple[int, int], ...]


class Patterns:
    """All patterns of `count` requests in `room` whose profit is at least `least`.

    Parameters
    ----------
    table
        The profits.
    count, room
        Free slots, tokens.
    least
        Patterns of less profit are left out; None for none.
    patience
        Entries, long ones counted several times, that may be put into the heap after the first ones.
    """

    def __init__(self, table: BestProfits, count: int, room: int, least: int | None, patience: int) -> None:
        self._table = table
        self._what = f"a worker with {count} free slots and room for {room} tokens"
        self._least = table.none_below if least is None else max(least, table.none_below)
        self._patience = patience
        self._found: list[Found] = []
        self._heap: list[tuple[int, int, tuple[int, ...], int, int]] = []  # -bound, missing, classes, room, profit
        if room >= 0:
            self._expand((), table.clipped(count, room), count, 0)

    def __getitem__(self, place: int) -> Found | None:
        """Return the pattern in this place, 0 being the most profitable, or None where there are no more.

        Raises
        ------
        CertificateError
            If finding it needs more steps than the patience allows.
        """
        while place >= len(self._found):
            if not self._advance():
                return None
        return self._found[place]

    def best_or_above(self) -> int | None:
        """Return the largest profit, or, where patience ends first, an upper bound on it; None without a pattern."""
        while not self._found:
            if self._patience <= 0 and self._heap:
                return -self._heap[0][0]
            if not self._advance():
                return None
        return self._found[0].profit

    def _advance(self) -> bool:
        """Take the most promising partial pattern out of the heap and extend it; False when none is left."""
        if not self._heap:
            return False
        if self._patience <= 0:
            raise CertificateError(f"{self._what} has more patterns than this checker has the patience to list")
        _, missing, pattern, room, profit = heapq.heappop(self._heap)
        if missing:
            before = len(self._heap)
            self._expand(pattern, room, missing, profit)
            self._patience -= (len(self._heap) - before) * (1 + len(pattern) // 16)
        else:
            needs = tuple((k, len(list(copies))) for k, copies in groupby(pattern))
            self._found.append(Found(profit, pattern, needs))
        return True

    def _expand(self, pattern: tuple[int, ...], room: int, missing: int, profit: int) -> None:
        """Put all ways to take one more request, of the last class at most, into the heap."""
        spend(10)
        table = self._table
        end = int(np.searchsorted(table.sizes, room, side="right"))
        copies = 0
        if pattern:
            last, limit = pattern[-1], table.classes.counts[pattern[-1]]
            copies = pattern[-limit:].count(last)
            end = min(end, last + (copies < limit))
        rooms = room - table.sizes[:end]
        profits = profit + table.profits[:end]
        until = table.follow[:end]
        if pattern and end == last + 1 and copies + 1 == limit:
            until = until.copy()
            until[last] = last
        bounds = profits + table.upper(missing - 1, rooms, until)
        for k in np.flatnonzero(bounds >= self._least).tolist():
            entry = (-int(bounds[k]), missing - 1, (*pattern, k), int(rooms[k]), int(profits[k]))
            heapq.heappush(self._heap, entry)


#: (free slots, room) of a worker.
Place = tuple[int, int]

#: Partial patterns that may be kept for one worker, where its best profit is known only from above.
_PATIENCE = 100_000


def best_profits(table: BestProfits, places: set[Place]) -> dict[Place, int]:
    """Return the largest profit of a pattern, or a number above it, for each place that has patterns."""
    best: dict[Place, int] = {}
    for slots in {slots for slots, _ in places}:
        rooms = sorted(room for c, room in places if c == slots)
        profits = table.upper(slots, np.array(rooms, dtype=table.kind))
        best.update(zip(((slots, room) for room in rooms), profits.tolist(), strict=True))
    return best


def refined(
    table: BestProfits, workers: dict[int, Place], best: dict[Place, int], fixed: int
) -> tuple[dict[Place, int], int]:
    """Return the best profits, and fixed + their sum over all workers; where that is not negative, as low as can be.

    Parameters
    ----------
    best
        Best profit of each place; changed in place.
    fixed
        The part of the bound that does not depend on workers.
    """
    spare = fixed + sum(best[place] for place in workers.values())
    if spare >= 0 and not table.exact:
        for place, number in Counter(workers.values()).items():
            lower = min(best[place], _searched(table, *place))
            spare -= number * (best[place] - lower)
            best[place] = lower
            if spare < 0:
                break
    return best, spare


def _searched(table: BestProfits, slots: int, room: int) -> int:
    """Return the largest profit by a search that may end early, then a number above it."""
    found = Patterns(table, slots, room, least=None, patience=_PATIENCE).best_or_above()
    return table.magnitude if found is None else found
