"""Random small steps that meet the hypotheses of a lemma, and the second opinion on their optima."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from lbopt.theory.finding import Finding
from lbopt.theory.small_step import SmallStep

Draw = Callable[[np.random.Generator], SmallStep]

#: Beyond, listing all optima of one step takes longer than a check may.
MOST_PLACEMENTS = 3_000_000


def whole_rounds(G: int, B: int, s_max: int) -> Draw:
    """Rounds of Theorem 1: G B requests, all admitted at once, B to a worker; few or many different sizes in turn."""

    def draw(rng: np.random.Generator) -> SmallStep:
        among = rng.choice(np.arange(1, s_max + 1), rng.integers(2, s_max + 1), replace=False)
        return SmallStep.of([0] * G, [B] * G, rng.choice(among, G * B))

    return draw


def replete_steps(G: int, c_max: int, s_max: int, classes: int, spread: int, *, equal: bool = False) -> Draw:
    """Steps with 0 .. c_max free slots (all c_max if `equal`), at least one, and plenty of `classes` sizes."""

    def draw(rng: np.random.Generator) -> SmallStep:
        free = _slots(rng, G, c_max, equal)
        sizes = np.sort(rng.choice(np.arange(1, s_max + 1), classes, replace=False))
        before = rng.integers(0, spread + 1, G)
        return SmallStep(
            tuple(before.tolist()), tuple(free.tolist()), tuple(sizes.tolist()), (int(free.sum()),) * classes
        )

    return draw


def overloaded_steps(G: int, c_max: int, s_max: int, classes: int, spread: int) -> Draw:
    """Steps with c_max free slots on every worker, whose pool meets Definition 1 with little to spare.

    Half of the time loads are drawn from 2 to G levels: workers that are equally heavy are a case of their own.
    """

    def draw(rng: np.random.Generator) -> SmallStep:
        sizes = rng.choice(np.arange(1, s_max + 1), classes, replace=False)
        waiting = list(rng.choice(sizes, G * c_max))
        while len(waiting) - max(np.unique(waiting, return_counts=True)[1]) < G * c_max:
            waiting.append(rng.choice(sizes))
        levels = rng.integers(0, spread + 1, rng.integers(2, G + 1) if rng.random() < 0.5 else G)
        before = levels if levels.size == G else rng.choice(levels, G)
        return SmallStep.of(before, [c_max] * G, waiting)

    return draw


def until(
    draw: Draw, optima: int, rng: np.random.Generator, counted: Callable[[SmallStep], int] | None = None
) -> Iterator[SmallStep]:
    """Yield steps until so many optima were seen; `counted` gives how many those of a step are, by default all."""
    seen = 0
    while seen < optima:
        step = draw(rng)
        seen += counted(step) if counted else len(step.optima[1])
        yield step


def placements_of(G: int, most: int, classes: int) -> int:
    """Return how many placements a step has at most when copies are plenty."""
    each: int = math.comb(most + classes - 1, classes - 1)
    return int(each**G)


def second_opinion(regime: str, steps: list[SmallStep]) -> Finding:
    """Return whether the optimum by exhaustion is the one of lbopt's search, which shares no code with it."""
    from lbopt.solvers import solve

    differ = undecided = 0
    largest = 0
    for step in steps:
        answer = solve(step.problem())
        if answer.status != "optimal":
            undecided += 1
            continue
        excess = abs(int(answer.objective or 0) - step.optima[0])
        largest, differ = max(largest, excess), differ + (excess > 0)
    return Finding(
        regime=regime,
        quantity="least imbalance by exhaustion against `lbopt solve`, largest difference (tokens)",
        kind="exact",
        relation="=",
        measured=largest,
        predicted=0,
        trials=len(steps),
        violations=differ,
        undecided=undecided,
    )


def _slots(rng: np.random.Generator, G: int, c_max: int, equal: bool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if equal:
        return np.full(G, c_max, np.int64)
    while True:
        free = rng.integers(0, c_max + 1, G)
        if free.any():
            return free
