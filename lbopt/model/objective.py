"""Imbalance: the one definition that every room of lbopt uses.

At a step with worker loads L_g the barrier makes all wait for the heaviest, and the idle work is

    Imb = sum_g (max_g L_g - L_g) = G * max_g L_g - sum_g L_g          (tokens)

(BF-IO, eq. 2). A step problem sums it over its window h = 0..H. Exact in int64: `StepProblem` refuses data whose
total could exceed 2**62.

Under conditions (`lbopt.model.conditions`) loads are in units of each worker's pace, less what workers hold already of
a prompt and what is paused, and waiting and pausing have costs, which are added.
"""

from __future__ import annotations

import numpy as np

from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.step_problem import StepProblem


def imbalance(loads: IntArray) -> int:
    """Return sum over the window of G * max - sum.

    Parameters
    ----------
    loads
        int64, shape (G,) or (G, H+1), tokens.
    """
    return int(loads.shape[0] * loads.max(axis=0).sum() - loads.sum())


def loads_after(problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> IntArray:
    """Return the loads, int64 (G, H+1), once the requests with `assignment[i] >= 0` are placed.

    They are in tokens, or in units of `Conditions.pace` where the problem has paces.

    Parameters
    ----------
    problem
        The step problem.
    assignment
        int64 (N,), worker of each request, -1 where it waits.
    paused
        bool (R,), which of the running requests of `problem.conditions` sit out the step; None for none.
    """
    loads = problem.base.copy()
    admitted = np.flatnonzero(assignment >= 0)
    np.add.at(loads, assignment[admitted], work_on(problem, admitted, assignment[admitted]))
    conditions = problem.conditions
    if conditions is None:
        return loads
    if paused is not None and conditions.running_worker is not None and conditions.running_work is not None:
        np.subtract.at(loads[:, 0], conditions.running_worker[paused], conditions.running_work[paused, 0])
    if conditions.pace is not None:
        loads *= conditions.pace[:, None]
    return loads


def work_on(problem: StepProblem, requests: IntArray, workers: IntArray) -> IntArray:
    """Return the work of each request on the worker beside it, int64 (n, H+1), tokens: less the worker's credit.

    Parameters
    ----------
    requests, workers
        int64 (n,), pairs of a request and a worker.
    """
    work: IntArray = problem.work[requests]
    if problem.conditions is None or problem.conditions.credit is None:
        return work
    return work - problem.conditions.credit[requests, workers][:, None] * (work > 0)


def objective(problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> int:
    """Return the imbalance in tokens, summed over the window, after `assignment`, and the costs that conditions add.

    Parameters
    ----------
    problem
        The step problem.
    assignment
        int64 (N,), worker of each request, -1 where it waits.
    paused
        As in `loads_after`.

    Examples
    --------
    >>> import lbopt, numpy
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> lbopt.objective(problem, numpy.array([2, -1, 1, 1, 0]))
    280
    """
    return imbalance(loads_after(problem, assignment, paused)) + costs(problem, assignment, paused)


def costs(problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> int:
    """Return what waiting and pausing add to the imbalance; 0 without conditions.

    Parameters
    ----------
    problem, assignment, paused
        As in `objective`.
    """
    conditions = problem.conditions
    if conditions is None:
        return 0
    waiting = 0 if conditions.overdue_first else overdue(problem, assignment)
    pauses = 0 if paused is None or conditions.pause_cost is None else int(conditions.pause_cost[paused].sum())
    return waiting + pauses


def overdue(problem: StepProblem, assignment: IntArray) -> int:
    """Return the total waiting cost of the requests that are left waiting; 0 where waiting costs nothing."""
    if problem.conditions is None or problem.conditions.waiting_cost is None:
        return 0
    return int(problem.conditions.waiting_cost[assignment < 0].sum())


def goals_reached(problem: StepProblem, assignment: IntArray) -> tuple[int, ...]:
    """Return the values of the goals that come before the objective, as `Conditions.goals` names them."""
    if problem.conditions is None:
        return ()
    values = {"left_waiting": int((assignment < 0).sum()), "overdue": overdue(problem, assignment)}
    return tuple(values[goal] for goal in problem.conditions.goals)


def rank(
    problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None, loads: IntArray | None = None
) -> tuple[int, ...]:
    """Return the goals, then the objective: of two decisions the one with the smaller tuple is better.

    Parameters
    ----------
    problem, assignment, paused
        As in `objective`.
    loads
        What `loads_after` returns, where that is known already.
    """
    after = loads_after(problem, assignment, paused) if loads is None else loads
    if problem.conditions is None:
        return (imbalance(after),)
    return (*goals_reached(problem, assignment), imbalance(after) + costs(problem, assignment, paused))


def barrier_total(problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> int:
    """Return G * sum_h M_h after `assignment`: the work the fleet could have done up to the barriers (tokens).

    Parameters
    ----------
    problem, assignment, paused
        As in `objective`.
    """
    return int(problem.num_workers * loads_after(problem, assignment, paused).max(axis=0).sum())
