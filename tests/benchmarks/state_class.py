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

from lbopt import StepProblem, solve
from lbopt.instances.sources import open_trace
from lbopt.instances.steady.state_sets import state_set
from lbopt.model import barrier_total
from lbopt.runner import Isolated, Store, Task, run_tasks
from lbopt.studies.progress import Progress
from lbopt.studies.race.profile import Times
from lbopt.studies.race.versions import solver_version
from lbopt.studies.race.warm_up import refresh

FILES = {"burstgpt": "burstgpt_8000.json", "azure": "azure_llm_2023_conv.csv"}

#: States of a task.
PIECE = 50


@dataclass(frozen=True)
class StateRuns:
    """What came of each state of a class.

    seconds: wall time of the call. proved: whether the answer was. open_share: what was left open, of G * sum_h M_h.
    """

    seconds: Times
    proved: np.ndarray
    open_share: Times

    @property
    def times(self) -> Times:
        """Seconds of the proofs, infinite where there is none."""
        return np.where(self.proved, self.seconds, np.inf)


def run_class(
    name: str, *, count: int, limit: float, store: Path, data: Path, shift: int, progress: Progress
) -> StateRuns:
    """Solve the first `count` states of a class, those that `store` does not hold yet."""
    tasks = [
        Task(
            "tests.benchmarks.state_class:solve_piece",
            {
                "name": name,
                "first": first,
                "count": min(PIECE, count - first),
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
        rows = [opened.get(task) for task in tasks]
    found = {
        key: [value for row in rows if row is not None for value in row.answer[key]]
        for key in ("seconds", "proved", "open_share")
    }
    return StateRuns(np.array(found["seconds"]), np.array(found["proved"]), np.array(found["open_share"]))


def solve_piece(
    *, name: str, first: int, count: int, limit: float, data: str, shift: int, version: str
) -> dict[str, Any]:
    """Solve some states of a class; `version` is that of the search, so that another one runs anew."""
    problems = _states(name, data, shift)[first : first + count]
    refresh("exact", problems[0].horizon > 0)
    gc.collect()
    seconds, results = [], []
    for problem in problems:
        begun = time.perf_counter()
        result = solve(problem, time_limit=limit)
        seconds.append(time.perf_counter() - begun)
        results.append(result)
    return {
        "seconds": seconds,
        "proved": [result.proved for result in results],
        "open_share": [
            float(result.gap or 0) / barrier_total(problem, result.assignment)
            for problem, result in zip(problems, results, strict=True)
        ],
    }


@lru_cache(maxsize=1)
def _states(name: str, data: str, shift: int) -> list[StepProblem]:
    """All states of a class; the next piece is of the same one."""
    chosen = state_set(name)
    trace = open_trace(str(Path(data) / FILES[chosen.trace]))
    return list(replace(chosen, seed=chosen.seed + shift).problems(trace, chosen.count))
