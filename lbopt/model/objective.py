"""A decision: whether it is feasible, and what it costs. Imbalance is defined here alone, for every room of lbopt.

An assignment is the worker of each waiting request, or -1 where it keeps waiting, checked against its problem.

At a step with worker loads L_g the barrier makes all wait for the heaviest, and the idle work is

    Imb = sum_g (max_g L_g - L_g) = G * max_g L_g - sum_g L_g          (tokens)

(BF-IO, eq. 2). A step problem sums it over its window h = 0..H. Exact in int64: `StepProblem` refuses data whose
total could exceed 2**62.

Under conditions (`lbopt.model.conditions`) loads are in units of each worker's pace, less what workers hold already of
a prompt and what is paused, and waiting and pausing have costs, which are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.kinds import typed
from lbopt.model.conditions import Conditions
from lbopt.model.integers import BoolArray, IntArray, rectangular
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


@typed
def objective(problem: StepProblem, assignment: IntArray, paused: BoolArray | None = None) -> int:
    """Return the imbalance in tokens, summed over the window, after `assignment`, and the costs that conditions add.

    Parameters
    ----------
    problem
        The step problem.
    assignment
        int64 (N,), worker of each request, -1 where it waits. More requests may wait than have to.
    paused
        As in `loads_after`.

    Raises
    ------
    InfeasibleDecisionError
        Where a worker gets more than its free slots, or what it may not take.

    Examples
    --------
    >>> import lbopt, numpy
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> lbopt.objective(problem, numpy.array([2, -1, 1, 1, 0]))
    280
    """
    placed = check_assignment(problem, assignment, who="assignment", full=False)
    sat_out = None if paused is None else check_paused(problem, paused)
    return imbalance(loads_after(problem, placed, sat_out)) + costs(problem, placed, sat_out)


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


WAITS = -1


def check_assignment(
    problem: StepProblem, assignment: Any, *, who: str = "the assignment", full: bool = True
) -> IntArray:
    """Return `assignment` as int64 (N,) if it is feasible for `problem`.

    Feasible means: each entry is -1 or a worker, no worker gets more than its free slots, exactly
    U = min(N, sum of slots) requests are admitted, and those of `must_admit` are among them (BF-IO, section 4). Under
    conditions no worker takes what it is not allowed to take, or more than its resources hold, and a number of
    requests is demanded only where `Conditions.admit` is one.

    Parameters
    ----------
    who
        Who made the assignment, for the error message ("policy 'mine.py:route'").
    full
        False: workers and slots are checked alone; a router may keep back requests that could be admitted.

    Raises
    ------
    InfeasibleDecisionError
        Naming the first rule that is broken, the request or worker, and the value found.
    """
    raw = rectangular(who, assignment)
    if raw.shape != (problem.num_requests,):
        raise InfeasibleDecisionError(
            f"{who} has shape {raw.shape}; expected one worker (or -1) for each of {problem.num_requests} requests"
        )
    if raw.size and raw.dtype.kind not in "iu":
        raise InfeasibleDecisionError(f"{who} holds {raw.dtype} values; expected whole worker numbers or -1")
    if raw.dtype.kind == "u" and raw.size and int(raw.max()) > np.iinfo(np.int64).max:
        raise InfeasibleDecisionError(f"{who} sends a request to worker {int(raw.max())}, which does not exist")
    workers = raw.astype(np.int64)
    outside = (workers < WAITS) | (workers >= problem.num_workers)
    if outside.any():
        i = int(outside.argmax())
        raise InfeasibleDecisionError(
            f"{who} sends request {i} to worker {workers[i]}; expected -1 or 0..{problem.num_workers - 1}"
        )
    counts = np.bincount(workers[workers >= 0], minlength=problem.num_workers)
    crowded = counts > problem.slots
    if crowded.any():
        g = int(crowded.argmax())
        raise InfeasibleDecisionError(
            f"{who} sends {counts[g]} requests to worker {g}, which has {problem.slots[g]} free slots"
        )
    conditions = problem.conditions
    if conditions is not None:
        _check_conditions(conditions, workers, problem.num_workers, who)
    if not full:
        return workers
    admitted = int(counts.sum())
    if conditions is not None and conditions.exactly not in (None, admitted):
        raise InfeasibleDecisionError(
            f"{who} admits {admitted} requests; exactly {conditions.exactly} must be admitted"
        )
    if conditions is None and admitted != problem.num_admitted:
        raise InfeasibleDecisionError(
            f"{who} admits {admitted} requests; exactly min(N, free slots) = {problem.num_admitted} must be admitted"
        )
    left_out = problem.must_admit & (workers < 0)
    if left_out.any():
        raise InfeasibleDecisionError(f"{who} leaves request {int(left_out.argmax())} waiting, which must be admitted")
    return workers


def check_paused(problem: StepProblem, paused: Any, *, who: str = "the decision") -> BoolArray | None:
    """Return `paused` as bool (R,), one entry for each running request that may pause; None where none may.

    Parameters
    ----------
    paused
        Which of them pause; None for none.
    """
    count = 0 if problem.conditions is None else problem.conditions.num_pausable
    raw = np.zeros(count, dtype=np.bool_) if paused is None else rectangular("paused", paused)
    if raw.shape != (count,) or (count and raw.dtype.kind != "b"):
        raise InfeasibleDecisionError(
            f"{who} has {raw.dtype} values of shape {raw.shape} as paused; expected true or false for each of "
            f"the {count} running requests that may pause"
        )
    return raw if count else None


def _check_conditions(conditions: Conditions, workers: IntArray, num_workers: int, who: str) -> None:
    placed = np.flatnonzero(workers >= 0)
    if conditions.allowed is not None:
        wrong = placed[~conditions.allowed[placed, workers[placed]]]
        if wrong.size:
            i = int(wrong[0])
            raise InfeasibleDecisionError(f"{who} sends request {i} to worker {workers[i]}, which may not take it")
    for resource in conditions.resources:
        taken = np.zeros(num_workers, dtype=np.int64)
        np.add.at(taken, workers[placed], resource.need[placed])
        if (taken > resource.limit).any():
            g = int(np.argmax(taken > resource.limit))
            raise InfeasibleDecisionError(
                f"{who} takes {taken[g]} of the {resource.name} of worker {g}, which has {resource.limit[g]}"
            )
