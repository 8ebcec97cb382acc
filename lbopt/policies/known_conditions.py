"""What an observation tells of memory and speed, as conditions of the step problem (`lbopt.model.Conditions`).

Speed: a worker that needs f times as long for its own part of a step has pace f, in hundredths; a common divisor goes.
Memory: worker g has room for

    capacity - (blocks that stay free) - committed - (requests that it runs or queues) * ceil(room / block)

blocks, and a request of s tokens needs what s + `room` tokens occupy: so whatever a worker runs can make `room` more
tokens before somebody is pre-empted. An engine lets a request that is alone have the whole memory; a request that
exceeds what is left of an empty worker therefore needs just that. As many requests as possible are admitted, but at
most 16 to each worker in one decision, which is what lbopt's own search takes: an empty fleet is filled in a few steps.

Overdue requests are tried one after the other, the oldest first, each on the worker with most room left. Those that fit
are forced. The first one that does not keeps the worker with most room from all younger ones, until it fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Conditions, StepProblem
from lbopt.policies.observation import Memory, Observation

#: Paces are whole multiples of 1/100, within these ends.
PACE_UNIT = 100
_LEAST, _MOST = 1, 100_000

#: Requests that a worker gets in one decision at most: those that the search takes.
MOST_SLOTS = 16

Ints = NDArray[np.int64]


def under_what_is_known(problem: StepProblem, observation: Observation, room: int) -> tuple[StepProblem, int]:
    """Return the problem under the conditions that can change its decision, and what a token weighs in its objective.

    Parameters
    ----------
    problem
        The step problem of the observation, H = 0; its `must_admit` are the requests that are overdue.
    observation
        What the router knows.
    room
        Tokens by which every request of a worker must be able to grow.
    """
    pace, unit = paces_of(observation.slow)
    slots, capacity, need, allowed = problem.slots, None, None, None
    if observation.is_open is not None:
        slots = np.where(observation.is_open, slots, 0)
    if observation.memory is not None:
        capacity, need = memory_of(observation, observation.memory, room)
        slots = np.where(capacity >= need.min(initial=np.iinfo(np.int64).max), slots, 0)
        if not binds(capacity, need, slots):
            capacity = need = None
    if capacity is not None or pace is not None:
        slots = np.minimum(slots, MOST_SLOTS)
    must = problem.must_admit
    if capacity is not None and need is not None:
        must, allowed = _forced(must, capacity, need, slots)
    else:
        must = must & (np.cumsum(must) <= slots.sum())
    known = StepProblem(problem.base, slots, problem.work, must)
    if capacity is None and pace is None:
        return known, 1
    return known.under(Conditions(capacity=capacity, need=need, allowed=allowed, pace=pace)), unit


def paces_of(slow: NDArray[np.float64] | None) -> tuple[Ints | None, int]:
    """Return the pace of each worker, int64 (G,), None where all are alike; and the pace of a factor of 1."""
    if slow is None:
        return None, 1
    pace = np.clip(np.rint(slow * PACE_UNIT), _LEAST, _MOST).astype(np.int64)
    if (pace == pace[0]).all():
        return None, 1
    common = int(np.gcd.reduce(np.append(pace, PACE_UNIT)))
    return pace // common, PACE_UNIT // common


def memory_of(observation: Observation, memory: Memory, room: int) -> tuple[Ints, Ints]:
    """Return the blocks that each worker has for new requests, int64 (G,), and that each request needs, int64 (n,).

    Parameters
    ----------
    observation, memory
        What the router knows.
    room
        Tokens by which every request must be able to grow.
    """
    present = observation.running + observation.queued
    empty = memory.capacity - memory.kept_free
    capacity = np.maximum(empty - memory.committed - present * -(-room // memory.block), 0)
    return capacity, np.minimum(memory.needed(observation.sizes + room), max(0, int(empty.max())))


def binds(capacity: Ints, need: Ints, slots: Ints) -> bool:
    """Return whether memory can keep a worker from filling its free slots with any of the waiting requests.

    Parameters
    ----------
    capacity, need
        int64 (G,) and (n,), blocks.
    slots
        int64 (G,), free slots.
    """
    largest = np.concatenate([[0], np.cumsum(np.sort(need)[::-1])])
    return bool((largest[np.minimum(slots, need.size)] > capacity).any())


def _forced(
    overdue: NDArray[np.bool_], capacity: Ints, need: Ints, slots: Ints
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return which requests have to be admitted, bool (n,), and who may go where, bool (n, G), None for everywhere.

    Parameters
    ----------
    overdue
        bool (n,): requests that have waited too long, in order of age.
    capacity, need
        int64 (G,) and (n,), blocks.
    slots
        int64 (G,), free slots.
    """
    must = np.zeros(overdue.size, dtype=np.bool_)
    left, free = capacity.copy(), slots.copy()
    for i in np.flatnonzero(overdue).tolist():
        if not free.any():
            break
        g = int(np.argmax(np.where(free > 0, left, -1)))
        if left[g] < need[i]:
            kept = int(np.argmax(left))
            allowed = np.ones((overdue.size, capacity.size), dtype=np.bool_)
            allowed[i + 1 :, kept] = False
            return must, allowed
        must[i] = True
        left[g] -= need[i]
        free[g] -= 1
    return must, None


def placed_by_age(problem: StepProblem) -> Ints:
    """Return a decision that keeps memory, int64 (n,): requests that must start, then the others, oldest first.

    Each goes to the worker with most room left, as `_forced` tried those that must start; so all of these fit.

    Parameters
    ----------
    problem
        What `under_what_is_known` has returned.
    """
    conditions, N = problem.conditions, problem.num_requests
    left, need = np.zeros(problem.num_workers, dtype=np.int64), np.zeros(N, dtype=np.int64)
    if conditions is not None and conditions.capacity is not None and conditions.need is not None:
        left, need = conditions.capacity.copy(), conditions.need
    placed, free = np.full(N, -1, dtype=np.int64), problem.slots.copy()
    for i in np.argsort(~problem.must_admit, kind="stable").tolist():
        fits = (free > 0) & (left >= need[i])
        if conditions is not None and conditions.allowed is not None:
            fits &= conditions.allowed[i]
        if fits.any():
            g = int(np.argmax(np.where(fits, left, -1)))
            placed[i] = g
            left[g] -= need[i]
            free[g] -= 1
    return placed
