"""The patterns of a worker that can still be filled, however many there are: whole blocks are tested at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.certificates.patterns import Found, Patterns

#: Patterns that are tested one by one before blocks are worth their while.
_SINGLES = 4


class PatternList:
    """Patterns in order of falling profit, with the copies that each needs as arrays.

    Parameters
    ----------
    source
        Where they come from, one after another, as far as they are asked for.
    count
        Requests in each pattern.
    """

    def __init__(self, source: Patterns, count: int) -> None:
        self._source = source
        self._losses: list[int] = []  # minus the profits, ascending
        self._classes = np.zeros((2 * _SINGLES, count), dtype=np.int64)
        self._copies = np.zeros((2 * _SINGLES, count), dtype=np.int64)

    def available(self, left: NDArray[np.int64], least: int) -> Iterator[Found]:
        """Yield the patterns of profit `least` or more that `left[k]` copies of each class k suffice for."""
        start, size = 0, _SINGLES
        while True:
            self._load(start + size, least)
            end = min(start + size, bisect_right(self._losses, -least))
            if start == 0:
                for i in range(min(end, size)):
                    found = self._source[i]
                    if found is not None and all(left.item(k) >= copies for k, copies in found.needs):
                        yield found
            else:
                enough = (left[self._classes[start:end]] >= self._copies[start:end]).all(axis=1)
                for i in np.flatnonzero(enough).tolist():
                    found = self._source[start + i]
                    if found is not None:
                        yield found
            if end < start + size:
                return
            start, size = end, 4 * size

    def _load(self, number: int, least: int) -> None:
        """Fetch this many patterns, or as many as there are with a profit of `least` or more."""
        while len(self._losses) < number and (not self._losses or self._losses[-1] <= -least):
            row = len(self._losses)
            found = self._source[row]
            if found is None:
                return
            if row == len(self._classes):
                self._classes = np.concatenate([self._classes, np.zeros_like(self._classes)])
                self._copies = np.concatenate([self._copies, np.zeros_like(self._copies)])
            self._classes[row] = found.pattern
            self._copies[row] = [copy for _, copies in found.needs for copy in range(1, copies + 1)]
            self._losses.append(-found.profit)
