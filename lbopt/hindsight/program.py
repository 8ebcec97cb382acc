"""The placement of a run as an integer program over chains and windows, for HiGHS and CP-SAT.

Variables: x_ig = 1 where chain i runs on worker g, and M_c, the largest token sum of window c. Minimise sum_c M_c
subject to sum_g x_ig = 1 (i), sum of x_ig over the chains that run <= B (g, each crowded step), and sum of tokens times
x_ig <= M_c (c, g). Workers are identical: chain i runs on one of the first i + 1. M_c is at least what the bounds of
the window's steps say; the relaxation says nothing beyond them, since x = 1 / G levels all loads: solvers branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbopt.hindsight.chains import Chains
from lbopt.hindsight.timetable import IntArray
from lbopt.model import StepProblem
from lbopt.model.formulation import LinearProgram, Row


def program_of(chains: Chains, tokens: IntArray, floors: IntArray) -> LinearProgram:
    """Return the integer program.

    Parameters
    ----------
    chains
        The run, with at least one request.
    tokens, floors
        int64 (n, C) and (C,): what each chain shows in each window, and what the window's barriers are at least.
    """
    workers, slots = chains.timetable.num_workers, chains.timetable.slots_per_worker
    n, windows, totals = tokens.shape[0], range(tokens.shape[1]), tokens.sum(axis=0).tolist()
    own = [range(i * workers, (i + 1) * workers) for i in range(n)]
    rows = [Row(f"placed_{i}", tuple(own[i]), (1,) * workers, 1, 1) for i in range(n)]
    for k in chains.crowded.tolist():
        there = chains.running(k).tolist()
        ones = (1,) * len(there)
        rows += [Row(f"slots_{k}_{g}", tuple(own[i][g] for i in there), ones, None, slots) for g in range(workers)]
    for c in windows:
        there = np.flatnonzero(tokens[:, c]).tolist()
        shown = (*tokens[there, c].tolist(), -1)
        columns = [(*(own[i][g] for i in there), n * workers + c) for g in range(workers)]
        rows += [Row(f"load_{c}_{g}", columns[g], shown, None, 0) for g in range(workers)]
    names = [f"x_{i}_{g}" for i in range(n) for g in range(workers)] + [f"M_{c}" for c in windows]
    lower = [0] * (n * workers) + floors.tolist()
    upper = [int(g <= i) for i in range(n) for g in range(workers)] + totals
    cost = [0] * (n * workers) + [1] * len(windows)
    step = StepProblem.now(loads=[0] * workers, slots=[slots] * workers, sizes=[1])
    total = workers * sum(totals)
    return LinearProgram(step, tuple(names), tuple(lower), tuple(upper), tuple(cost), tuple(rows), 0, 1, total)


def values_of(chains: Chains, tokens: IntArray, worker: IntArray) -> list[int]:
    """Return the values of all variables of the program for a placement (N,) of the requests."""
    on = np.eye(chains.timetable.num_workers, dtype=np.int64)[chains.workers_of(worker)]
    return [*on.ravel().tolist(), *(on.T @ tokens).max(axis=0).tolist()]


def placement_of(chains: Chains, values: Sequence[float]) -> IntArray:
    """Return the worker of each request, (N,), by the values of the program's variables."""
    n = chains.start.size
    on = np.asarray(values[: n * chains.timetable.num_workers], dtype=np.float64).reshape(n, -1)
    worker: IntArray = on.argmax(axis=1).astype(np.int64)
    return worker[chains.of]
