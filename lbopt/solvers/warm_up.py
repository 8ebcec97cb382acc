"""A few small problems before a solver is timed: what it compiles or imports on first use is there afterwards."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from lbopt.model import StepProblem
from lbopt.solvers.front import solve
from lbopt.solvers.registry import OWN, compiled

#: Seconds for each of the problems below; compiling is not cut short by it.
_LIMIT = 0.5
_TRIES = 8

#: Closed by neither greedy nor elementary reasoning, so that the solver asked for really runs.
TINY = StepProblem.now([10, 3, 5], [1, 2, 0], [4, 7, 9, 2, 6])


@cache
def warm(solver: str, window: bool) -> None:
    """Let `solver` answer a few small problems, so that what it loads or compiles on first use is there.

    Windows and single steps go different ways through lbopt's own search, so each is warmed apart; of the others it is
    the import that counts.
    """
    for problem in small_problems(solver, window):
        for _ in range(_TRIES):
            begin = time.perf_counter()
            solve(problem, solver=compiled(solver), time_limit=_LIMIT)
            if time.perf_counter() - begin < 2 * _LIMIT:  # else compiling took the time of what comes after it
                break


@cache
def small_problems(solver: str, window: bool) -> list[StepProblem]:
    """Return the problems that warm `solver`."""
    if solver not in OWN:
        return [TINY]
    return _windows() if window else _steps()


def _steps() -> list[StepProblem]:
    """A steady fleet with more requests than slots, one with fewer, one with forced requests, and two empty ones.

    The fourth takes so many requests on each worker that they are filled to a target (`kernels.partition.walk`), the
    last so many that some workers are filled before the last ones (`peel`).
    """
    rng = np.random.default_rng(7)
    loads, slots = rng.integers(70_000, 76_000, 16), rng.integers(0, 4, 16)
    sizes = rng.lognormal(5.4, 1.2, 96).astype(np.int64) + 1
    many = np.random.default_rng(4).lognormal(5.4, 1.2, 64).astype(np.int64) + 1
    forced = np.zeros(96, dtype=np.bool_)
    forced[:2] = True
    return [
        StepProblem.now(loads, slots, sizes),
        StepProblem.now(loads, slots, sizes[:8]),
        StepProblem.now(loads, slots, sizes, forced),
        StepProblem.now(np.zeros(9, dtype=np.int64), np.full(9, 7), many[:63]),
        StepProblem.now(np.zeros(8, dtype=np.int64), np.full(8, 64), many),
    ]


def _windows() -> list[StepProblem]:
    rng = np.random.default_rng(7)
    loads, slots = rng.integers(7_000, 7_600, 4), rng.integers(1, 3, 4)
    sizes = rng.lognormal(5.4, 1.2, 24).astype(np.int64) + 1
    departures = [(0, 2, 500), (2, 1, 300)]
    return [StepProblem.survives(loads, slots, sizes, 5, active=np.full(4, 10), departures=departures)]
