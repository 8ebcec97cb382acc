"""A step that is small enough for all its optima to be listed, and the smallest one that refutes a statement.

A step that is small enough for all its optima to be listed, and what the lemmas ask of each of them.

The listing is `lbopt.kernels.sampling.optima`; requests of one size are interchangeable, so a placement is an array
int64 (G, m): how many of each of the m sizes every worker gets.

A smaller step that refutes the same statement: what cannot be taken away is what refutes it.

From a step and a placement that violates the statement, one thing is taken away at a time (a worker with what it holds,
a slot with its request, a request that waits, some load, some size), and the first smaller step in which there still is
a violation takes its place, until none does (delta debugging, Zeller and Hildebrandt 2002, over the moves of a step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem

IntArray = NDArray[np.int64]


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
    def is_replete(self) -> bool:
        """Whether at least two sizes are present, each with as many copies as there are free slots, or more."""
        return len(self.sizes) >= 2 and min(self.copies) >= sum(self.free)

    @property
    def has_two_replete(self) -> bool:
        """Whether the largest size and one other have as many copies as there are free slots, or more."""
        slots = sum(self.free)
        return len(self.sizes) >= 2 and self.copies[-1] >= slots and max(self.copies[:-1]) >= slots

    @property
    def is_overloaded(self) -> bool:
        """Definition 1: without the commonest size, still as many requests as free slots."""
        return sum(self.copies) - max(self.copies) >= sum(self.free)

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


Placement = NDArray[np.int64]
Find = Callable[[SmallStep], Placement | None]


def shrink(step: SmallStep, find: Find) -> tuple[SmallStep, Placement]:
    """Return a step from which nothing more can be taken, and the placement in it that `find` gives.

    `find` gives a placement (G, m) that violates the statement although its hypotheses hold, or None; it must give one
    for `step`. Moves that break the hypotheses are refused by `find` itself.
    """
    placement = find(step)
    if placement is None:
        raise ValueError("there is nothing to shrink: the step does not violate the statement")
    while True:
        for smaller in _smaller(step, placement):
            found = find(smaller) if any(smaller.free) else None  # nothing is decided where no slot is free
            if found is not None:
                step, placement = smaller, found
                break
        else:
            return step, placement


def counterexample(step: SmallStep, placement: Placement, says: str) -> dict[str, Any]:
    """Return the counterexample of a finding: the step for ``lbopt solve``, the workers of its requests, a sentence."""
    return {"problem": step.problem().to_dict(), "assignment": step.assignment(placement), "says": says}


def _smaller(step: SmallStep, placement: Placement) -> Iterator[SmallStep]:
    """Yield what is left when one thing is taken away, the largest things first; each has fewer workers, slots or
    requests, or less load or size in all, so that shrinking ends."""
    G, held = len(step.free), placement > 0
    if G > 1:
        for g in range(G):
            rest = [w for w in range(G) if w != g]
            yield _step(step, workers=rest, copies=np.array(step.copies) - placement[g])
    for pick in (0, -1):  # one slot of every worker, with the smallest or the largest request that it holds
        gone = np.zeros(len(step.sizes), np.int64)
        for g in range(G):
            if step.free[g]:
                gone[np.flatnonzero(held[g])[pick]] += 1
        if gone.any():
            yield _step(step, free=[max(0, slots - 1) for slots in step.free], copies=np.array(step.copies) - gone)
    for g, j in np.argwhere(held).tolist():
        free = [slots - (w == g) for w, slots in enumerate(step.free)]
        yield _step(step, free=free, copies=np.array(step.copies) - (np.arange(len(step.sizes)) == j))
    for j, waiting in enumerate((np.array(step.copies) - placement.sum(axis=0)).tolist()):
        for fewer in sorted({waiting, 1} if waiting else set(), reverse=True):
            yield _step(step, copies=np.array(step.copies) - fewer * (np.arange(len(step.sizes)) == j))
    if min(step.before) > 0:
        yield _step(step, before=[load - min(step.before) for load in step.before])
    for g, load in enumerate(step.before):
        for lower in sorted({0, load // 2, load - 1} if load else set()):
            yield _step(step, before=[lower if w == g else one for w, one in enumerate(step.before)])
    for j, size in enumerate(step.sizes):
        for lower in sorted({1, size // 2, size - 1} if size > 1 else set()):
            yield _step(step, sizes=[max(1, lower) if i == j else one for i, one in enumerate(step.sizes)])


def _step(
    step: SmallStep, *, workers: Any = None, before: Any = None, free: Any = None, sizes: Any = None, copies: Any = None
) -> SmallStep:
    """Return `step` with some parts replaced; sizes that became equal are one size."""
    before, free = before or list(step.before), free if free is not None else list(step.free)
    if workers is not None:
        before, free = [before[g] for g in workers], [free[g] for g in workers]
    requests = np.repeat(sizes or list(step.sizes), step.copies if copies is None else copies)
    return SmallStep.of(before, free, requests)
