"""An assignment: the worker of each waiting request, or -1 where it keeps waiting, checked against its problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.model.conditions import Conditions
from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.step_problem import StepProblem

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
    raw = np.asarray(assignment)
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
    raw = np.zeros(count, dtype=np.bool_) if paused is None else np.asarray(paused)
    if raw.shape != (count,) or (count and raw.dtype.kind != "b"):
        raise InfeasibleDecisionError(
            f"{who} pauses by {raw.dtype} values of shape {raw.shape}; expected true or false for each of the {count} "
            "running requests that may pause"
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
