"""Small steps: all their optima are listed, and they are drawn so that they meet the hypotheses of a lemma.

A step that is small enough for all its optima to be listed, and what the lemmas ask of each of them.

The listing is `lbopt.kernels.sampling.optima`; requests of one size are interchangeable, so a placement is an array
int64 (G, m): how many of each of the m sizes every worker gets.

Random small steps that meet the hypotheses of a lemma, and the second opinion on their optima.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.theory.finding import Finding
from lbopt.theory.regime import MOST, Asks, Regime, at_least, between, require

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


Draw = Callable[[np.random.Generator], SmallStep]

#: Beyond, listing all optima of one step takes longer than a check may.
MOST_PLACEMENTS = 3_000_000


@dataclass(frozen=True, kw_only=True)
class StepShape(Regime):
    """What steps are drawn with.

    Parameters
    ----------
    G
        Number of workers.
    c_max
        Most free slots of a worker.
    s_max
        Largest prompt, tokens.
    classes
        Number of different sizes.
    spread
        Largest difference of loads before admission, tokens.
    """

    G: int = 3
    c_max: int = 2
    s_max: int = 5
    classes: int = 2
    spread: int = 12
    asks: ClassVar[Asks] = {
        "c_max": at_least(1, "a free slot somewhere"),
        "spread": between(0, MOST, f"loads that differ by 0 to {MOST:,} tokens"),
    }

    def require_listed(self, claim: str, most: int) -> None:
        """Refuse a pool of no such sizes, and more than `most` placements, which are listed."""
        G, c, s_max, classes = self.G, self.c_max, self.s_max, self.classes
        shown = f"classes is {classes} and s_max is {s_max}"
        require(claim, 2 <= classes <= s_max, "a pool of 2 to s_max sizes", shown)
        few = f"steps of at most {most:,} placements here (they are listed)"
        found = f"G = {G} workers with {c} free slots and {classes} sizes give {self.placements:,}"
        require(claim, self.placements <= most, few, found)

    @property
    def placements(self) -> int:
        """How many placements a step has at most when copies are plenty."""
        return placements_of(self.G, self.c_max, self.classes)


def whole_rounds(G: int, B: int, s_max: int) -> Draw:
    """Rounds of Theorem 1: G B requests, all admitted at once, B to a worker; few or many different sizes in turn."""

    def draw(rng: np.random.Generator) -> SmallStep:
        among = rng.choice(np.arange(1, s_max + 1), rng.integers(2, s_max + 1), replace=False)
        return SmallStep.of([0] * G, [B] * G, rng.choice(among, G * B))

    return draw


def replete_steps(shape: StepShape) -> Draw:
    """Steps with plenty of `classes` sizes."""

    def draw(rng: np.random.Generator) -> SmallStep:
        free, sizes = _slots(rng, shape.G, shape.c_max), _sizes(rng, shape.s_max, shape.classes)
        return _step(rng.integers(0, shape.spread + 1, shape.G), free, sizes, np.full(shape.classes, free.sum()))

    return draw


def two_plenty_steps(shape: StepShape) -> Draw:
    """Steps with plenty of the largest size and of one other; there are 1 .. U copies of each of the rest."""

    def draw(rng: np.random.Generator) -> SmallStep:
        free, sizes = _slots(rng, shape.G, shape.c_max), _sizes(rng, shape.s_max, shape.classes)
        copies = rng.integers(1, free.sum() + 1, shape.classes)
        copies[-1] = copies[rng.integers(0, shape.classes - 1)] = free.sum()
        return _step(_levels(rng, shape.G, shape.spread), free, sizes, copies)

    return draw


def any_overloaded_steps(shape: StepShape, c_min: int = 0, *, plentiful: bool = False) -> Draw:
    """Steps whose pool meets Definition 1 with little to spare, some sizes rare and others common.

    Every worker has at least `c_min` free slots; with `plentiful` the largest size has as many copies as are admitted.
    """

    def draw(rng: np.random.Generator) -> SmallStep:
        free, sizes = _slots(rng, shape.G, shape.c_max, c_min), _sizes(rng, shape.s_max, shape.classes)
        shares = rng.random(shape.classes) + 0.05
        copies = np.ones(shape.classes, np.int64)
        copies[-1] = free.sum() if plentiful else 1
        while copies.sum() - copies.max() < free.sum():
            copies[rng.choice(shape.classes, p=shares / shares.sum())] += 1
        return _step(_levels(rng, shape.G, shape.spread), free, sizes, copies)

    return draw


def overloaded_steps(shape: StepShape) -> Draw:
    """Steps with c_max free slots on every worker, whose pool meets Definition 1 with little to spare."""

    G, c = shape.G, shape.c_max

    def draw(rng: np.random.Generator) -> SmallStep:
        sizes = rng.choice(np.arange(1, shape.s_max + 1), shape.classes, replace=False)
        waiting = list(rng.choice(sizes, G * c))
        while len(waiting) - max(np.unique(waiting, return_counts=True)[1]) < G * c:
            waiting.append(rng.choice(sizes))
        return SmallStep.of(_levels(rng, G, shape.spread), [c] * G, waiting)

    return draw


def until(draw: Draw, optima: int, rng: np.random.Generator) -> Iterator[SmallStep]:
    """Yield steps until they have so many optima in all."""
    seen = 0
    while seen < optima:
        step = draw(rng)
        seen += len(step.optima[1])
        yield step


def placements_of(G: int, most: int, classes: int) -> int:
    """Return how many placements a step has at most when copies are plenty."""
    each: int = math.comb(most + classes - 1, classes - 1)
    return int(each**G)


def second_opinion(regime: str, steps: list[SmallStep]) -> Finding:
    """Return whether the optimum by exhaustion is the one of lbopt's search, which shares no code with it."""
    from lbopt.solvers import solve

    answers = [(step, solve(step.problem(), "search")) for step in steps]
    excess = [
        abs(int(answer.objective or 0) - step.optima[0]) for step, answer in answers if answer.status == "optimal"
    ]
    undecided = len(steps) - len(excess)
    quantity = "least imbalance by exhaustion against `lbopt solve`, largest difference (tokens)"
    return Finding.exact(regime, quantity, excess, relation="=", trials=len(steps), undecided=undecided)


def _slots(rng: np.random.Generator, G: int, c_max: int, c_min: int = 0) -> IntArray:
    """c_min .. c_max free slots on each worker, at least one in all; half of the time as many on every worker."""
    if rng.random() < 0.5:
        return np.full(G, rng.integers(max(1, c_min), c_max + 1))
    while True:
        free = rng.integers(c_min, c_max + 1, G)
        if free.any():
            return free


def _sizes(rng: np.random.Generator, s_max: int, classes: int) -> IntArray:
    return np.sort(rng.choice(np.arange(1, s_max + 1), classes, replace=False))


def _levels(rng: np.random.Generator, G: int, spread: int) -> IntArray:
    """Loads; half of the time of 2 to G levels, for workers that are equally heavy are a case of their own."""
    levels = rng.integers(0, spread + 1, rng.integers(2, G + 1) if rng.random() < 0.5 else G)
    return levels if levels.size == G else rng.choice(levels, G)


def _step(before: IntArray, free: IntArray, sizes: IntArray, copies: IntArray) -> SmallStep:
    return SmallStep(*(tuple(array.tolist()) for array in (before, free, sizes, copies)))
