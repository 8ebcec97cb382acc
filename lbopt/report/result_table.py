"""The table of one solved step problem: what is known, and a line per worker that gets something."""

from __future__ import annotations

import numpy as np

from lbopt.model import StepProblem, loads_after
from lbopt.report import numbers
from lbopt.solvers import Result
from lbopt.table import Table


def result_table(problem: StepProblem, result: Result) -> Table:
    """Return the placement, one line per worker with free slots, under a sentence that says what it is worth."""
    rows = []
    if result.assignment is not None:
        after = loads_after(problem, result.assignment, result.paused)
        for g in np.flatnonzero(problem.slots > 0).tolist():
            placed = np.flatnonzero(result.assignment == g)
            sizes = ", ".join(f"#{i} ({numbers.tokens(problem.work[i, 0])})" for i in placed.tolist()) or "–"
            rows.append(
                (str(g), numbers.tokens(problem.base[g, 0]), str(problem.slots[g]), sizes, numbers.tokens(after[g, 0]))
            )
    waiting = 0 if result.assignment is None else int((result.assignment < 0).sum())
    return Table(
        title=result.summary(),
        caption=f"{problem.num_requests} requests, {_admitted(problem, result)} admitted, {waiting} keep waiting; "
        f"{_pauses(result)}problem {problem.digest[:12]}.{_unit(problem)}",
        headers=("worker", "load before", "free slots", "gets request (tokens)", "load after"),
        rows=rows,
    )


def _admitted(problem: StepProblem, result: Result) -> int:
    """Return how many are admitted; under conditions fewer than slots permit may be."""
    plain = problem.conditions is None or result.assignment is None
    return problem.num_admitted if plain else int((result.placed() >= 0).sum())


def _pauses(result: Result) -> str:
    if result.paused is None:
        return ""
    return f"running requests that pause: {', '.join(map(str, np.flatnonzero(result.paused).tolist())) or 'none'}; "


def _unit(problem: StepProblem) -> str:
    if problem.conditions is None or problem.conditions.pace is None:
        return ""
    return " Loads after are in units of pace, as the objective is."
