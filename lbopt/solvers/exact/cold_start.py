"""An empty or nearly empty cluster and more requests than slots: imbalance zero, for which most choices will do.

With a set of admitted requests fixed, the cost is G M - (loads before) - T, so zero asks for loads that are all equal,
hence for a total divisible by G. Of many requests nearly any such set can be balanced (`balance`), so one is as good as
another: the oldest, with one of them exchanged where the total has to be mended. A cost of zero, or of the elementary
bound, is proved; else what is found is a start for the search by prices.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.balance import Balancing

#: Free slots per open worker from which on the set of admitted requests hardly matters.
MANY_SLOTS = 4

#: Slices of work that are spent on a set, some 20 ms each.
_SLICES = 50


def is_cold(problem: StepProblem) -> bool:
    """Tell whether requests have to wait although each open worker gets many."""
    open_workers = int((problem.slots > 0).sum())
    return problem.num_requests > problem.num_admitted >= MANY_SLOTS * max(1, open_workers)


def balanced_start(problem: StepProblem, limits: Limits) -> Generator[IntArray, None, None]:
    """Yield better and better assignments of the chosen requests, one after each slice.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    limits
        When the time is over: a slice does not outlast it.
    """
    base, sizes = problem.base[:, 0], problem.work[:, 0]
    chosen = _chosen(problem, base, sizes)
    balancing = Balancing(base, problem.slots, sizes[chosen], limits)

    def search() -> Generator[None, None, bool]:
        done = yield from balancing.longest_first()
        return done or (yield from balancing.fill_to_targets())

    steps = search()
    for _ in range(_SLICES):
        next(steps, None)
        assignment = np.full(sizes.size, -1, dtype=np.int64)
        assignment[chosen] = balancing.assignment
        yield assignment
        if balancing.done:
            return


def _chosen(problem: StepProblem, base: IntArray, sizes: IntArray) -> IntArray:
    """Return the oldest requests, the forced ones first; one is exchanged where that makes the total divisible by G."""
    G, U = problem.num_workers, problem.num_admitted
    order = np.argsort(~problem.must_admit, kind="stable")
    inside, outside = np.sort(order[:U]), np.sort(order[U:])
    wanted = -(sum(base.tolist()) + sum(sizes[inside].tolist())) % G
    free = inside[~problem.must_admit[inside]]
    if wanted == 0 or free.size == 0:
        return inside
    # whom to take in for each remainder of whom is left out: the smallest of its kind
    of_remainder = np.full(G, -1, dtype=np.int64)
    for i in outside[np.argsort(-sizes[outside], kind="stable")]:
        of_remainder[sizes[i] % G] = i
    partner = of_remainder[(sizes[free] + wanted) % G]
    fitting = np.flatnonzero(partner >= 0)
    if fitting.size == 0:
        return inside
    change = np.abs(sizes[partner[fitting]] - sizes[free[fitting]])
    best = fitting[np.argmin(change)]
    return np.sort(np.append(inside[inside != free[best]], partner[best]))
