"""Steps with many free slots a worker and odd sizes: patterns of several requests, and no two sizes alike.

In the *even* ones a worker is short of the others by about what its free slots bring, so that near-equal loads exist
and the optimum is small; in the *wide* ones loads are drawn without regard to that. Sizes to 10^4 are those of long
prompts, sizes to 10^9 leave no two sums equal. Some requests must be admitted in the entries called `must`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft

FIRST_SEED = 20_270_501

#: Loads, G, most free slots of a worker, N, largest size, requests that must be admitted. Only append.
ROWS: tuple[tuple[str, int, int, int, int, int], ...] = (
    ("even", 4, 4, 24, 10**4, 0),
    ("even", 4, 8, 40, 10**4, 0),
    ("even", 8, 8, 80, 10**4, 0),
    ("even", 8, 8, 60, 10**4, 12),
    ("even", 16, 8, 150, 10**4, 0),
    ("wide", 16, 8, 150, 10**4, 0),
    ("even", 32, 8, 300, 10**4, 0),
    ("even", 4, 4, 24, 10**9, 0),
    ("even", 4, 8, 40, 10**9, 0),
    ("wide", 4, 8, 40, 10**9, 0),
    ("even", 8, 8, 80, 10**9, 0),
    ("even", 8, 6, 60, 10**9, 12),
)


def _draft(name: str, row: tuple[str, int, int, int, int, int], seed: int) -> Draft:
    loads, workers, most, count, largest, forced = row
    rng = np.random.default_rng(seed)
    slots = rng.integers(1, most + 1, workers)
    base = rng.integers(0, most * largest // 2 + 1, workers)
    if loads == "even":
        base = most * largest - slots * (3 * largest // 5) + rng.integers(0, largest // 2 + 1, workers)
    sizes = rng.integers(1, largest + 1, count)
    must = np.zeros(count, dtype=np.bool_)
    must[rng.choice(count, forced, replace=False)] = True
    tail = f", {forced} of which must be admitted" if forced else ""
    return Draft(
        name=name,
        kind="hard",
        explanation=f"{workers} workers with up to {most} free slots and {loads} loads, "
        f"{count} sizes up to {largest:,}{tail}.",
        origin=Origin(
            recipe="hard",
            source="uniform loads, slots and sizes of numpy.random.default_rng",
            seed=seed,
            parameters={
                "loads": loads,
                "most_free_slots": most,
                "count": count,
                "largest": largest,
                "must_admit": forced,
            },
        ),
        problem=StepProblem.now(loads=base, slots=slots, sizes=sizes, must_admit=must),
    )


def _name(row: tuple[str, int, int, int, int, int]) -> str:
    loads, workers, most, count, largest, forced = row
    return f"hard-{loads}-g{workers}-c{most}-n{count}-max{largest}" + ("-must" if forced else "")


RECIPES: dict[str, Callable[[], Draft]] = {
    _name(row): partial(_draft, _name(row), row, FIRST_SEED + place) for place, row in enumerate(ROWS)
}
