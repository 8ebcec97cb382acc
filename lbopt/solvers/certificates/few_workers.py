"""The verifier's own enumeration of few requests on few workers, all of which are placed: can loads stay below a level?

Written apart from the search (`lbopt.kernels.partition.few_workers`), with NumPy and Python integers. Worker after
worker is given every subset of what is left that leaves the others enough room, found by joining the sums of two halves
of the requests. NumPy's integers hold the sums exactly: a step problem has none beyond 2**62.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbopt.solvers.allowance import spend
from lbopt.solvers.recount import Numbers

Ints = NDArray[np.int64]

#: Requests and workers for which it is tried.
MOST_REQUESTS, MOST_WORKERS = 40, 8


def refuted(p: Numbers, level: int, patience: int) -> bool | None:
    """Tell whether no assignment of all requests keeps every load at or below `level`; None where that takes too long.

    For problems at horizon 0 in which all requests are admitted. `patience` is the number of subsets to look at.
    """
    loads = [row[0] for row in p.base]
    if max(loads) > level:
        return True
    open_workers = sorted((level - a, c) for a, c in zip(loads, p.slots, strict=True) if c > 0)
    sizes = sorted((row[0] for row in p.work), reverse=True)
    if len(sizes) > MOST_REQUESTS or len(open_workers) > MOST_WORKERS:
        return None
    try:
        return not _Enumeration(sizes, patience).fits(tuple(range(len(sizes))), open_workers)
    except _OutOfPatienceError:
        return None


class _OutOfPatienceError(Exception):
    pass


class _Enumeration:
    def __init__(self, sizes: list[int], patience: int) -> None:
        self.sizes, self.patience = sizes, patience

    def fits(self, left: tuple[int, ...], workers: list[tuple[int, int]]) -> bool:
        """Tell whether the requests `left` fit workers of these (room, slots)."""
        total = sum(self.sizes[i] for i in left)
        if len(workers) == 1:
            return total <= workers[0][0] and len(left) <= workers[0][1]
        (room, slots), others = workers[-1], workers[:-1]
        low, fewest = total - sum(r for r, _ in others), len(left) - sum(c for _, c in others)
        alike = all(a == b for a, b in pairwise(workers))
        kept = left[:1] if alike and left else ()  # on one of them it lies, no matter which
        for chosen in self._subsets(left[len(kept) :], kept, low, room, fewest, slots):
            taken = set(chosen)
            if self.fits(tuple(i for i in left if i not in taken), others):
                return True
        return False

    def _subsets(
        self, free: tuple[int, ...], kept: tuple[int, ...], low: int, high: int, fewest: int, most: int
    ) -> list[tuple[int, ...]]:
        """Return `kept` with every subset of `free` so that sum and number lie in the given ranges."""
        sure = sum(self.sizes[i] for i in kept)
        first, second = free[::2], free[1::2]
        sums, other = self._sums(first), self._sums(second)
        self._spend(sums.size + other.size)
        order = np.argsort(other, kind="stable")
        begin = np.searchsorted(other[order], low - sure - sums, side="left")
        end = np.searchsorted(other[order], high - sure - sums, side="right")
        self._spend(int(np.maximum(0, end - begin).sum()))
        found = []
        for i in np.flatnonzero(end > begin).tolist():
            for k in order[begin[i] : end[i]].tolist():
                chosen = kept + _members(first, i) + _members(second, k)
                if fewest <= len(chosen) <= most:
                    found.append(chosen)
        return found

    def _sums(self, places: tuple[int, ...]) -> Ints:
        """Return the sum of each subset, numbered by its bits."""
        sums = np.zeros(1, np.int64)
        for i in places:
            sums = np.concatenate([sums, sums + self.sizes[i]])
        return sums

    def _spend(self, count: int) -> None:
        spend(20 + count // 50)
        self.patience -= count
        if self.patience < 0:
            raise _OutOfPatienceError


def _members(places: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(i for bit, i in enumerate(places) if number >> bit & 1)
