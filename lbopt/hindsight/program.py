"""The clairvoyant optimum as an integer program, for a second opinion of HiGHS or CP-SAT.

Variables: x_ig = 1 where request i runs on worker g, and M_k, the barrier of a piece of time. Minimise sum_k w_k M_k
subject to sum_g x_ig = 1 (i), sum of x_ig over the requests that run <= B (g, each step in which a request starts), and
sum of sizes times x_ig <= M_k (k, g). While all slots are in use all loads grow alike, so that the barriers from one
event to the next are one variable with the number of steps as its weight; elsewhere each step has its own. Workers are
identical: request i runs on one of the first i + 1. M_k is at least what the bounds of its step say.

The relaxation of this program says nothing beyond these bounds, since x = 1 / G levels all loads: solvers have to
branch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hindsight.bounds import events, step_bounds
from lbopt.hindsight.timetable import Timetable
from lbopt.model import StepProblem
from lbopt.model.linear_program import LinearProgram, Row
from lbopt.solvers.backend import Task, load
from lbopt.solvers.registry import capabilities, require
from lbopt.solvers.rounding import rounded_up

IntArray = NDArray[np.int64]

#: Solvers of integer programs that can be asked.
SOLVERS = ("highs", "cp-sat")


@dataclass(frozen=True, slots=True, eq=False)
class ProgramAnswer:
    """What a solver said of a run.

    Parameters
    ----------
    lower
        Its claimed bound on the sum of barriers; None for none.
    upper, worker
        The placement that it found, counted again; None where it found none or where it does not keep the slots.
    stop
        "done", "time", "interrupted" or "failed".
    trusted
        Whether the numbers are so small that the solver's claims are believed (`lbopt.solvers.registry`).
    seconds
        Time taken, the program's writing included.
    """

    lower: int | None
    upper: int | None
    worker: IntArray | None
    stop: str
    trusted: bool
    seconds: float


def program_of(timetable: Timetable) -> LinearProgram:
    """Return the integer program of a timetable with at least one request."""
    if timetable.num_requests == 0:
        raise InputError("a timetable without requests has no program; expected 1 request or more")
    workers, slots, count = timetable.num_workers, timetable.slots_per_worker, timetable.num_requests
    running, floors, totals = timetable.running(), step_bounds(timetable), timetable.totals()
    marks = events(timetable).tolist()
    pieces: list[tuple[int, int]] = []  # first step and number of steps
    for low, high in pairwise(marks):
        if running[low] == workers * slots:
            pieces.append((low, high - low))
        elif running[low]:
            pieces.extend((k, 1) for k in range(low, high))
    names = [f"x_{i}_{g}" for i in range(count) for g in range(workers)] + [f"M_{k}" for k, _ in pieces]
    upper = [int(g <= i) for i in range(count) for g in range(workers)] + [int(totals[k]) for k, _ in pieces]
    lower = [0] * (count * workers) + [int(floors[k]) for k, _ in pieces]
    cost = [0] * (count * workers) + [steps for _, steps in pieces]
    rows = [
        Row(f"placed_{i}", tuple(i * workers + g for g in range(workers)), (1,) * workers, 1, 1) for i in range(count)
    ]
    for k in np.unique(timetable.start).tolist():
        inside = np.flatnonzero((timetable.start <= k) & (timetable.end > k)).tolist()
        if len(inside) > slots:
            ones = (1,) * len(inside)
            rows.extend(
                Row(f"slots_{k}_{g}", tuple(i * workers + g for i in inside), ones, None, slots) for g in range(workers)
            )
    for column, (k, _) in enumerate(pieces, start=count * workers):
        inside = np.flatnonzero((timetable.start <= k) & (timetable.end > k)).tolist()
        sizes = [int(timetable.prompt[i] + k - timetable.start[i]) for i in inside]
        for g in range(workers):
            columns = (*(i * workers + g for i in inside), column)
            rows.append(Row(f"load_{k}_{g}", columns, (*sizes, -1), None, 0))
    # Steps in which all loads grow alike cost B for each step and worker more than the first of them says.
    offset = sum(slots * (steps * (steps - 1) // 2) for _, steps in pieces)
    first = StepProblem.now(loads=[0] * workers, slots=[slots] * workers, sizes=[1])
    total = workers * sum(int(totals[k]) * steps for k, steps in pieces)
    return LinearProgram(first, tuple(names), tuple(lower), tuple(upper), tuple(cost), tuple(rows), offset, 1, total)


def solve_program(timetable: Timetable, solver: str, time_limit: float | None = None, seed: int = 0) -> ProgramAnswer:
    """Ask a solver of integer programs for the least sum of barriers.

    Parameters
    ----------
    timetable
        The run.
    solver
        One of `SOLVERS`; its package is imported here.
    time_limit
        Seconds; None for no limit.
    seed
        Of the solver.

    Raises
    ------
    InputError
        Where the solver is not one of these.
    BackendUnavailableError
        Where its package is not installed.
    """
    if solver not in SOLVERS:
        raise InputError(f"solver is {solver!r}; expected one of {', '.join(SOLVERS)}")
    require(solver)
    began = time.perf_counter()
    program = program_of(timetable)
    answer = load(solver).minimise(Task(program=program, time_limit=time_limit, seed=seed, begun=began))
    upper, worker = None, None
    if answer.values is not None:
        share = np.asarray(answer.values[: timetable.num_requests * timetable.num_workers], dtype=np.float64)
        worker = share.reshape(timetable.num_requests, -1).argmax(axis=1).astype(np.int64)
        try:
            upper = timetable.barriers(worker)
        except InputError:
            worker = None
    claim = rounded_up(answer.bound)
    return ProgramAnswer(
        None if claim is None else program.tokens(claim),
        upper,
        worker,
        answer.stop,
        capabilities(solver).trusts(program.total),
        time.perf_counter() - began,
    )
