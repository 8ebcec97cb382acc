"""Time `lbopt.solve` on all states of a class, one after the other, as a router would be asked.

The states are made before the clock starts, so that what is timed finds the caches as a running router leaves them. A
piece of a class is one task of `lbopt.runner`, computed in a process of its own and kept in a store.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lbopt import Result, StepProblem, solve, verify
from lbopt.exceptions import CertificateError
from lbopt.model import barrier_total
from lbopt.runner import Isolated, Store, Task, run_tasks
from lbopt.studies.progress import Progress
from tests.benchmarks.race.measure import refresh
from tests.benchmarks.race.profile import Times
from tests.benchmarks.race.versions import solver_version
from tools.steady.state_sets import state_set

#: Begins what is said of a proof that is too long.
NOT_WRITTEN = "not written: "

#: States of a task.
PIECE = 50


@dataclass(frozen=True)
class StateRuns:
    """What came of each state of a class.

    seconds: wall time of the call. proved: whether the answer was. open_share: what was left open, of G * sum_h M_h.
    checked: why the independent checker did not confirm the bound, "" where it did, None where it was not asked.
    """

    seconds: Times
    proved: np.ndarray
    open_share: Times
    checked: list[str | None]

    @property
    def times(self) -> Times:
        """Seconds of the proofs, infinite where there is none."""
        return np.where(self.proved, self.seconds, np.inf)


def run_class(
    name: str, *, count: int, checks: int, limit: float, store: Path, data: Path, shift: int, progress: Progress
) -> StateRuns:
    """Solve the first `count` states of a class, those that `store` does not hold yet, and check the first proofs."""
    tasks = [
        Task(
            "tests.benchmarks.state_class:solve_piece",
            {
                "name": name,
                "first": first,
                "count": min(PIECE, count - first),
                "checks": min(max(0, checks - first), PIECE),
                "limit": limit,
                "data": str(data),
                "shift": shift,
                "version": solver_version("exact"),
            },
            None,
        )
        for first in range(0, count, PIECE)
    ]
    progress.begin(name, len(tasks))
    with Store(store) as opened:
        run_tasks(
            tasks,
            opened,
            engine=Isolated(reuse=True),
            progress=lambda summary, outcome: progress.advance(summary.skipped if outcome is None else 1),
        )
        rows = [row for task in tasks if (row := opened.get(task)) is not None]
    failed = next((row.failure for row in rows if row.failure is not None), None)
    if failed is not None:
        raise RuntimeError(f"a piece of {name} failed, and is tried again by the same command: {failed}")
    found = {
        key: [value for row in rows for value in row.answer[key]]
        for key in ("seconds", "proved", "open_share", "checked")
    }
    numbers = (np.array(found[key]) for key in ("seconds", "proved", "open_share"))
    return StateRuns(*numbers, found["checked"])


def solve_piece(
    *, name: str, first: int, count: int, checks: int, limit: float, data: str, shift: int, version: str
) -> dict[str, Any]:
    """Solve some states of a class and check some of the proofs; `version` is that of the search: another runs anew."""
    problems = states_of(name, data, shift)[first : first + count]
    refresh("exact", problems[0].horizon > 0)
    gc.collect()
    seconds, results = [], []
    for problem in problems:
        begun = time.perf_counter()
        result = solve(problem, "search", time_limit=limit)
        seconds.append(time.perf_counter() - begun)
        results.append(result)
    return {
        "seconds": seconds,
        "proved": [result.proved for result in results],
        "open_share": [
            float(result.gap or 0) / barrier_total(problem, result.assignment)
            for problem, result in zip(problems, results, strict=True)
        ],
        "checked": [
            _checked(problem, result) if i < checks else None
            for i, (problem, result) in enumerate(zip(problems, results, strict=True))
        ],
    }


def _checked(problem: StepProblem, result: Result) -> str:
    """Write the proof of the bound down and have it checked; return what is wrong with it, if anything."""
    try:
        result.certificate()
    except CertificateError as error:
        return f"{NOT_WRITTEN}{error}" if "not written" in str(error) else str(error)
    try:
        return "" if verify(problem, result).bound_established else "the bound is not established"
    except CertificateError as error:
        return str(error)


@lru_cache(maxsize=1)
def states_of(name: str, data: str, shift: int) -> list[StepProblem]:
    """All states of a class; the next piece is of the same one."""
    chosen = state_set(name)
    return list(replace(chosen, seed=chosen.seed + shift).problems(chosen.records(data), chosen.count))
