"""The patterns of a worker in order of falling profit, found one after another and only as far as they are asked for.

A pattern is a multiset of classes, written in descending order, that fills all free slots of a worker and fits into its
room. Best-first search: a partial pattern of some largest classes waits in a heap under an upper bound of what it can
become (its profit so far, and the best profit of the requests still missing in the room that is left), so complete
patterns leave the heap in order of profit, and none is left out: every pattern has exactly one parent, its own largest
part. The upper bound knows that the classes to come are at most the last one, and below it where its copies are used
up; it may be too high where copies of a class are used in part, where the table is coarse or where memory does not
allow tables after each class. That costs time, not truth.
"""

from __future__ import annotations

import heapq
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
