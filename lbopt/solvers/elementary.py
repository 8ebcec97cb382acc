"""What is known before any search: a greedy placement, and a lower bound by elementary reasoning.

Greedy: admit a set, then place it largest first where it hurts least; the best one wins. Three sets are tried (the
oldest U requests, the largest U, the smallest U; `must_admit` belongs to each) with two rules of placement (the worker
with the least load; the worker whose load raises the envelope least). `solve` never returns anything worse.

Bound: exact integers, see `lbopt.model.floors`.
"""

from __future__ import annotations

import numpy as np

from lbopt.model import WAITS, StepProblem, objective
from lbopt.model.floors import Floors
from lbopt.model.integers import IntArray
from lbopt.solvers.conditions.greedy import greedy_under_conditions


def greedy_assignment(problem: StepProblem) -> IntArray:
    """Return the best of the greedy assignments, int64 (N,); ties go to the one tried first.

    Under conditions there may be none; then the error says so.
    """
    if problem.conditions is not None:
        return greedy_under_conditions(problem)
    if problem.num_admitted == 0:
        return np.full(problem.num_requests, WAITS, dtype=np.int64)
    candidates = [
        _place(problem, admitted, by_envelope=rule) for admitted in _admitted_sets(problem) for rule in (False, True)
    ]
    return min(candidates, key=lambda assignment: objective(problem, assignment))


def _admitted_sets(problem: StepProblem) -> list[list[int]]:
    size = problem.work.sum(axis=1).tolist()
    forced = np.flatnonzero(problem.must_admit).tolist()
    free = np.flatnonzero(~problem.must_admit).tolist()
    count = problem.num_admitted - len(forced)
    orders = (
        [free]
        if count == len(free)
        else [free, sorted(free, key=lambda i: -size[i]), sorted(free, key=lambda i: size[i])]
    )
    return [sorted(forced + order[:count], key=lambda i: (-size[i], i)) for order in orders]


def _place(problem: StepProblem, admitted: list[int], *, by_envelope: bool) -> IntArray:
    assignment = np.full(problem.num_requests, WAITS, dtype=np.int64)
    loads = problem.base.copy()
    room = problem.slots.copy()
    for i in admitted:
        candidates = np.flatnonzero(room)
        after = loads[candidates] + problem.work[i]
        if by_envelope:
            # Raise of sum_h M_h first, then the least area: a lexicographic choice, stable towards low workers.
            raised = np.maximum(after - loads.max(axis=0), 0).sum(axis=1)
            best = np.lexsort((after.sum(axis=1), raised))[0]
        else:
            best = int(after.sum(axis=1).argmin())
        g = int(candidates[best])
        assignment[i], loads[g] = g, after[best]
        room[g] -= 1
    return assignment


def elementary_bound(problem: StepProblem) -> int:
    """Return what every decision costs at least, in tokens, by the elementary reasoning of `lbopt.model.floors`."""
    return Floors(problem).bounds()[-1]
