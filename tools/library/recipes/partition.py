"""Number partitioning as a step problem: empty workers, every number is admitted, the loads should become equal.

Two families. *Balanced*: n uniform numbers up to R on G workers of ceil(n / G) slots, the form of the instances of
"Optimal Balanced Multiway Number Partitioning" (drawn afresh here; the published ones are not redistributed). *Short*:
few numbers of many bits on three or four workers without a limit of slots, near the density where a perfect partition
stops existing (Mertens 1998) and proofs are hardest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft

FIRST_SEED = 20_270_401

#: Numbers n, workers G, largest number R. The place in the list gives the seed: only append.
BALANCED: tuple[tuple[int, int, int], ...] = (
    (100, 10, 10**6),
    (300, 20, 10**7),
    (1000, 7, 10**4),
    (500, 30, 10**7),
    (500, 50, 10**5),
    (1000, 100, 10**4),
    (1000, 100, 10**6),
)

#: Numbers n, workers G, bits, which of them.
SHORT: tuple[tuple[int, int, int, str], ...] = (
    (20, 3, 16, "a"),
    (20, 3, 16, "b"),
    (30, 3, 16, "a"),
    (30, 3, 16, "b"),
    (24, 3, 32, "a"),
    (40, 4, 31, "a"),
)


def _draft(name: str, seed: int, *, count: int, workers: int, largest: int, slots: int, explanation: str) -> Draft:
    numbers = np.random.default_rng(seed).integers(1, largest + 1, count)
    problem = StepProblem.now(loads=np.zeros(workers, dtype=np.int64), slots=np.full(workers, slots), sizes=numbers)
    return Draft(
        name=name,
        kind="partition",
        explanation=explanation,
        origin=Origin(
            recipe="partition",
            source="uniform numbers of numpy.random.default_rng",
            seed=seed,
            slots_per_worker=slots,
            parameters={"count": count, "largest": largest},
        ),
        problem=problem,
    )


def _recipes() -> dict[str, Callable[[], Draft]]:
    recipes: dict[str, Callable[[], Draft]] = {}
    for place, (count, workers, largest) in enumerate(BALANCED):
        name = f"partition-n{count}-g{workers}-max{largest}"
        slots = -(-count // workers)
        recipes[name] = partial(
            _draft,
            name,
            FIRST_SEED + place,
            count=count,
            workers=workers,
            largest=largest,
            slots=slots,
            explanation=f"{count} uniform numbers up to {largest:,} on {workers} workers, at most {slots} on each.",
        )
    for place, (count, workers, bits, mark) in enumerate(SHORT):
        name = f"partition-n{count}-g{workers}-{bits}bit-{mark}"
        recipes[name] = partial(
            _draft,
            name,
            FIRST_SEED + 50 + place,
            count=count,
            workers=workers,
            largest=2**bits - 1,
            slots=count,
            explanation=f"{count} numbers of {bits} bits on {workers} workers, without a limit of slots.",
        )
    return recipes


RECIPES = _recipes()
