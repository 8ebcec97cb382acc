"""Tie orders: which of the assignments that differ only by equals is the answer.

An optimum says how many requests of each size go to which worker. Requests of one size are equals, and so are workers
of one load with as many free slots. Among all assignments that differ by exchanging equals, a tie order names one,
whatever path the search took:

* of requests of one size, those that must be admitted and then the preferred are admitted, and in this order they go to
  the workers in ascending number;
* of workers of one load and as many free slots, the lower number gets the heavier requests: their sizes, descending,
  are compared as words are.

Preferred are the oldest, the newest (place in the pool is order of revelation, hence age), or those that a seeded
shuffle puts first. Optima that differ by more than equals are not told apart by this: the search returns the one that
it meets first, which is the same whenever problem and limits are.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.search.decision import hand_out_again
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.exhaustion import with_workers_in_order
from lbopt.solvers.front import check_tie_order


def canonical(
    problem: StepProblem, assignment: IntArray, tie: str = "oldest", seed: int | tuple[int, ...] = 0
) -> IntArray:
    """Return the assignment that `tie` names among those that differ from `assignment` by equals; int64 (N,).

    The cost is the same. `seed` feeds "random" alone.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    assignment
        int64 (N,); it is not changed.
    tie
        A name of `TIE_ORDERS`.
    seed
        Seed of "random".
    """
    check_tie_order(tie, "the exact search")
    sizes, must = problem.work[:, 0], problem.must_admit
    chosen = with_workers_in_order(problem, assignment)
    # Forced requests come first among their equals: as many of that size are admitted anyway.
    order = np.lexsort((_preference(tie, sizes.size, seed), ~must, sizes))
    hand_out_again(order, sizes, np.zeros_like(chosen), chosen)
    return chosen


def _preference(tie: str, count: int, seed: int | tuple[int, ...]) -> IntArray:
    """Return the rank of each request among its equals, lowest first."""
    if tie == "random":
        return np.random.default_rng(seed).permutation(count)
    return np.arange(count) if tie == "oldest" else np.arange(count)[::-1]
