"""Imbalance: the one definition that every room of lbopt uses.

At a step with worker loads L_g the barrier makes all wait for the heaviest, and the idle work is

    Imb = sum_g (max_g L_g - L_g) = G * max_g L_g - sum_g L_g          (tokens)

(BF-IO, eq. 2). A step problem sums it over its window h = 0..H. Exact in int64: `StepProblem` refuses data whose
total could exceed 2**62.
"""

from __future__ import annotations

import numpy as np

from lbopt.model.integers import IntArray
from lbopt.model.step_problem import StepProblem


def imbalance(loads: IntArray) -> int:
    """Return sum over the window of G * max - sum.

    Parameters
    ----------
    loads
        int64, shape (G,) or (G, H+1), tokens.
    """
    return int(loads.shape[0] * loads.max(axis=0).sum() - loads.sum())


def loads_after(problem: StepProblem, assignment: IntArray) -> IntArray:
    """Return the loads, int64 (G, H+1) in tokens, once the requests with `assignment[i] >= 0` are placed."""
    loads = problem.base.copy()
    admitted = np.flatnonzero(assignment >= 0)
    np.add.at(loads, assignment[admitted], problem.work[admitted])
    return loads


def objective(problem: StepProblem, assignment: IntArray) -> int:
    """Return the imbalance in tokens, summed over the window, after `assignment` (int64 (N,), -1 = waits).

    Examples
    --------
    >>> import lbopt, numpy
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> lbopt.objective(problem, numpy.array([2, -1, 1, 1, 0]))
    280
    """
    return imbalance(loads_after(problem, assignment))


def barrier_total(problem: StepProblem, assignment: IntArray) -> int:
    """Return G * sum_h M_h after `assignment`: the work the fleet could have done up to the barriers (tokens)."""
    return int(problem.num_workers * loads_after(problem, assignment).max(axis=0).sum())
