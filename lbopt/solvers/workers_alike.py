"""Workers that nothing tells apart, and which of them gets what."""

from __future__ import annotations

import numpy as np

from lbopt.model import StepProblem
from lbopt.model.integers import IntArray


def with_workers_in_order(problem: StepProblem, assignment: IntArray) -> IntArray:
    """Return a copy in which, of workers alike, the lower number has the heavier requests.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    assignment
        int64 (N,), worker of each request, -1 where it waits; it is not changed.
    """
    loads, slots = problem.base[:, 0], problem.slots
    by_kind = np.lexsort((slots, loads))  # stable: ascending numbers within a kind
    same = (np.diff(loads[by_kind]) == 0) & (np.diff(slots[by_kind]) == 0) & (slots[by_kind[1:]] > 0)
    if not same.any():  # the rule in a running fleet, where loads are large and differ
        return assignment.copy()
    new_number = np.arange(loads.size + 1)
    new_number[-1] = -1  # who waits
    placed = np.flatnonzero(assignment >= 0)
    placed = placed[np.lexsort((-problem.work[placed, 0], assignment[placed]))]  # by worker, the largest first
    begin = np.searchsorted(assignment[placed], np.arange(loads.size + 1))
    sizes = problem.work[placed, 0].tolist()
    for alike in np.split(by_kind, np.flatnonzero(~same) + 1):
        if alike.size == 1:
            continue
        content = [sizes[begin[g] : begin[g + 1]] for g in alike]
        new_number[alike[sorted(range(alike.size), key=lambda j: content[j], reverse=True)]] = alike
    return new_number[assignment]
