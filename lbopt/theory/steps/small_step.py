"""A step that is small enough for all its optima to be listed, and what the lemmas ask of each of them.

The listing is `lbopt.kernels.sampling.optima`; requests of one size are interchangeable, so a placement is an array
int64 (G, m): how many of each of the m sizes every worker gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem

IntArray = NDArray[np.int64]
Placement = NDArray[np.int64]


@dataclass(frozen=True)
class SmallStep:
    """A step at H = 0 in which all free slots are filled.

    Parameters
    ----------
    before, free
        Load before admission (tokens) and free slots of each worker, (G,).
    sizes, copies
        Strictly increasing sizes (tokens) and how many requests there are of each, at least 1, (m,); together at
        least as many as free slots.
    """

    before: tuple[int, ...]
    free: tuple[int, ...]
    sizes: tuple[int, ...]
    copies: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(self.copies) < sum(self.free):
            raise InputError(f"{sum(self.copies)} requests cannot fill {sum(self.free)} slots")

    @classmethod
    def of(cls, before: Any, free: Any, requests: Any) -> SmallStep:
        """Return the step in which `requests` (N,) wait, tokens, in any order."""
        sizes, copies = np.unique(np.asarray(requests, np.int64), return_counts=True)
        return cls(
            tuple(int(x) for x in before),
            tuple(int(x) for x in free),
            tuple(int(x) for x in sizes),
            tuple(int(x) for x in copies),
        )

    @property
    def gap_before(self) -> int:
        """D_pre, tokens."""
        return max(self.before) - min(self.before)

    @property
    def requests(self) -> list[int]:
        """The sizes of all requests, ascending."""
        return [size for size, number in zip(self.sizes, self.copies, strict=True) for _ in range(number)]

    def problem(self) -> StepProblem:
        """Return the same step as the solvers know it."""
        return StepProblem.now(list(self.before), list(self.free), self.requests)

    @cached_property
    def optima(self) -> tuple[int, IntArray]:
        """The least imbalance (tokens), and all placements that have it, int64 (n, G, m)."""
        from lbopt.kernels.sampling.optima import all_optima

        before, free = np.array(self.before, np.int64), np.array(self.free, np.int64)
        sizes, copies = np.array(self.sizes, np.int64), np.array(self.copies, np.int64)
        pattern, first = combinations_of(len(self.sizes), max(self.free))
        unlimited = len(self.before) * (max(self.before) + self.sizes[-1] * max(self.free)) + 1
        none = np.empty((0, free.size, sizes.size), np.int64)
        best, count = all_optima(before, free, sizes, copies, pattern, first, unlimited, none)
        found = np.empty((count, free.size, sizes.size), np.int64)
        all_optima(before, free, sizes, copies, pattern, first, best, found)
        return int(best), found

    @cached_property
    def lexi_optima(self) -> IntArray:
        """The optima of lexicographically least sorted loads, int64 (n, G, m)."""
        return self.leximax(self.optima[1])

    @cached_property
    def placements(self) -> IntArray:
        """All placements, int64 (n, G, m), for objectives other than the imbalance; only where there are few."""
        pattern, first = combinations_of(len(self.sizes), max(self.free))
        ways = [np.arange(first[slots], first[slots + 1]) for slots in self.free]
        chosen = pattern[np.stack([way.ravel() for way in np.meshgrid(*ways, indexing="ij")], axis=1)]
        return np.asarray(chosen[(chosen.sum(axis=1) <= np.array(self.copies)).all(axis=1)])

    def loads(self, placements: IntArray) -> IntArray:
        """Return the loads after admission, int64 (..., G), of placements (..., G, m)."""
        return np.asarray(np.array(self.before, np.int64) + placements @ np.array(self.sizes, np.int64))

    def leximax(self, placements: IntArray) -> IntArray:
        """Return those of the placements (n, G, m) whose loads, largest first, are lexicographically least."""
        ordered = -np.sort(-self.loads(placements), axis=1)
        first = ordered[np.lexsort(ordered.T[::-1])[0]]
        return np.asarray(placements[(ordered == first).all(axis=1)])

    def assignment(self, placement: IntArray) -> list[int]:
        """Return the worker of each of `requests`, -1 for those that wait, of one placement (G, m)."""
        workers = []
        for j, number in enumerate(self.copies):
            given = [g for g in range(len(self.free)) for _ in range(int(placement[g, j]))]
            workers += given + [-1] * (number - len(given))
        return workers


def gaps(loads: IntArray) -> IntArray:
    """Return D of loads (..., G)."""
    return np.asarray(loads.max(axis=-1) - loads.min(axis=-1))


@lru_cache(maxsize=64)
def combinations_of(num_sizes: int, most: int) -> tuple[IntArray, IntArray]:
    """Return every way to take 0 .. `most` requests of so many sizes, and where the ways of each number begin."""
    rows: list[list[int]] = []
    first = []
    for taken in range(most + 1):
        first.append(len(rows))
        chosen = combinations_with_replacement(range(num_sizes), taken)
        rows += [[one.count(j) for j in range(num_sizes)] for one in chosen]
    return np.array(rows, np.int64).reshape(-1, num_sizes), np.array([*first, len(rows)], np.int64)
