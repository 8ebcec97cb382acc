"""The linear bound over patterns, by enumeration: what column generation proves at its root, for tiny problems.

At a fixed envelope M each worker takes a fractional mixture of the sets of requests that fill its slots within M, each
request is used at most once, and as much work as possible is admitted; G * M minus loads and work is the cost, and the
least over all M that some worker can reach is the bound. Floating point: for comparisons, not for proofs.
"""

from __future__ import annotations

from itertools import combinations
from math import ceil

import numpy as np
from scipy.optimize import linprog

from lbopt.exceptions import InputError
from lbopt.model import StepProblem


def pattern_bound(problem: StepProblem) -> int:
    """Return the bound in tokens; for H = 0, more requests than free slots, and nobody who must be admitted."""
    if problem.horizon or problem.num_requests < problem.num_free_slots or problem.must_admit.any():
        raise InputError("the bound over patterns is for H = 0, a request for every slot, and no must_admit")
    loads, sizes = problem.base[:, 0].tolist(), problem.work[:, 0].tolist()
    patterns = [
        (g, chosen, sum(sizes[i] for i in chosen))
        for g, slots in enumerate(problem.slots.tolist())
        for chosen in combinations(range(len(sizes)), slots)
    ]
    most = sum(sorted(sizes, reverse=True)[: problem.num_free_slots])
    best: float | None = None
    for envelope in sorted({max(loads), *(loads[g] + value for g, _, value in patterns)}):
        if envelope < max(loads):
            continue
        fixed = problem.num_workers * envelope - sum(loads)
        if best is not None and fixed - most >= best:
            break
        fitting = [(g, chosen, value) for g, chosen, value in patterns if loads[g] + value <= envelope]
        admitted = _most_admitted(fitting, problem.num_workers, len(sizes))
        if admitted is not None and (best is None or fixed - admitted < best):
            best = fixed - admitted
    assert best is not None, "at the largest envelope every pattern fits"
    return max(0, ceil(best - 1e-6))


def _most_admitted(patterns: list[tuple[int, tuple[int, ...], int]], workers: int, requests: int) -> float | None:
    if {g for g, _, _ in patterns} != set(range(workers)):
        return None
    one_each = np.zeros((workers, len(patterns)))
    used = np.zeros((requests, len(patterns)))
    for column, (g, chosen, _) in enumerate(patterns):
        one_each[g, column] = 1
        used[list(chosen), column] = 1
    gain = -np.array([value for _, _, value in patterns], dtype=np.float64)
    answer = linprog(gain, A_ub=used, b_ub=np.ones(requests), A_eq=one_each, b_eq=np.ones(workers), method="highs")
    return -answer.fun if answer.status == 0 and answer.fun is not None else None
