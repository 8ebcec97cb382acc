"""Places the requests that a cover leaves open, and counts the placement exactly.

Depth first, in the order of the starts, on every worker that has a slot free through the request's life, where it adds
least first. What the windows cost already, or their floors, is a lower bound that never falls. The cost of a finished
placement is counted step by step. Where few tokens are left open most covers end at once, in one placement or by their
bound; one that takes too many decisions is given up, and its bound is returned instead.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed

#: The worker of a request that is not placed.
OPEN = -1

#: A bound that is never the least.
NEVER_LEAST = 1 << 62

#: Decisions after which a cover is given up.
_MOST = 100_000


@by_reference
class Exact(NamedTuple):
    """The timetable itself, in which placements are completed and counted."""

    start: Ints  # (N,)
    prompt: Ints  # (N,)
    output: Ints  # (N,)
    tokens: Ints  # (N, C)
    first: Ints  # (N,)
    last: Ints  # (N,)
    floor: Ints  # (C,)
    worker: Ints  # (N,) the placement to be completed
    best: Ints  # (N,) the best placement
    load: Ints  # (C, G) scratch
    held: Ints  # (C, G) scratch
    jump: Ints  # (K + 1, G) scratch
    slope: Ints  # (K + 1, G) scratch


@kernel
def barriers(exact: Exact, slots: int) -> int:
    """Return the sum of the barriers of a placement, step by step; -1 where a worker holds more than B.

    `exact` is the timetable with the placement, its scratch is changed; `slots` is B.
    """
    jump, slope = exact.jump, exact.slope
    jump[:] = 0
    slope[:] = 0
    for i in range(exact.worker.size):
        g, low, high = exact.worker[i], exact.start[i], exact.start[i] + exact.output[i]
        jump[low, g] += exact.prompt[i]
        jump[high, g] -= exact.prompt[i] + exact.output[i]
        slope[low, g] += 1
        slope[high, g] -= 1
    total = 0
    for k in range(jump.shape[0] - 1):
        most = 0
        for g in range(jump.shape[1]):
            if k > 0:
                jump[k, g] += jump[k - 1, g] + slope[k - 1, g]  # loads, and one token for each that ran a step before
                slope[k, g] += slope[k - 1, g]
            if slope[k, g] > slots:
                return -1
            most = max(most, jump[k, g])
        total += most
    return total


@kernel
def _cost(exact: Exact, low: int, high: int) -> int:
    """Return what windows [low, high) cost at least with the requests placed so far."""
    total = 0
    for c in range(low, high):
        total += max(exact.load[c].max(), exact.floor[c])
    return total


@kernel
def _put(exact: Exact, i: int, g: int, sign: int) -> None:
    """Add a request to a worker, or take it away.

    Parameters
    ----------
    exact
        The timetable; its loads are changed.
    i, g
        Request and worker.
    sign
        1 adds the request, -1 takes it away.
    """
    for c in range(exact.first[i], exact.last[i]):
        exact.load[c, g] += sign * exact.tokens[i, c]
        exact.held[c, g] += sign


@kernel
def _rank(exact: Exact, i: int, slots: int, choice: Ints, added: Ints) -> int:
    """Write down the workers that can take request i, least added first; return how many they are.

    Parameters
    ----------
    exact
        The timetable.
    i
        Request.
    slots
        B.
    choice, added
        int64, (G,): written; workers, and tokens that each adds.
    """
    count = 0
    low, high = exact.first[i], exact.last[i]
    for g in range(exact.load.shape[1]):
        fits, more = True, 0
        for c in range(low, high):
            fits = fits and exact.held[c, g] < slots
            before = max(exact.load[c].max(), exact.floor[c])
            more += max(exact.load[c, g] + exact.tokens[i, c] - before, 0)
        if fits:
            place = count
            while place > 0 and added[place - 1] > more:
                added[place], choice[place] = added[place - 1], choice[place - 1]
                place -= 1
            added[place], choice[place] = more, g
            count += 1
    return count


@kernel
def complete(exact: Exact, slots: int, target: int, deadline: int) -> tuple[int, int]:
    """Place the open requests of `exact.worker` so that the cost is below the target and least.

    Parameters
    ----------
    exact
        The timetable; `best` is changed where a placement is found, and the scratch.
    slots
        B.
    target
        Only placements below it are of interest.
    deadline
        Nanoseconds, as in `lbopt.kernels.deadline`.

    Returns
    -------
    tuple[int, int]
        What placements that were not tried cost at least, `NEVER_LEAST` where all were; cost of the best one, or -1.
    """
    workers = exact.load.shape[1]
    exact.load[:] = 0
    exact.held[:] = 0
    opened = 0
    for i in range(exact.worker.size):
        if exact.worker[i] == OPEN:
            opened += 1
        else:
            _put(exact, i, exact.worker[i], 1)
    if exact.held.max() > slots:
        return NEVER_LEAST, -1
    floor = _cost(exact, 0, exact.floor.size)
    if floor >= target:
        return NEVER_LEAST, -1
    if opened == 0:
        cost = barriers(exact, slots)
        if 0 <= cost < target:
            exact.best[:] = exact.worker
            return NEVER_LEAST, cost
        return NEVER_LEAST, -1
    request = np.empty(opened, np.int64)
    k = 0
    for i in range(exact.worker.size):
        if exact.worker[i] == OPEN:
            request[k] = i
            k += 1
    choice = np.zeros((opened, workers), np.int64)
    added = np.zeros((opened, workers), np.int64)
    count = np.zeros(opened, np.int64)
    tried = np.zeros(opened, np.int64)
    spent = np.zeros(opened + 1, np.int64)
    spent[0] = floor
    found, decisions, k = -1, 0, 0
    count[0] = _rank(exact, request[0], slots, choice[0], added[0])
    while k >= 0:
        i = request[k]
        if exact.worker[i] != OPEN:
            _put(exact, i, exact.worker[i], -1)
            exact.worker[i] = OPEN
        if tried[k] == count[k] or spent[k] + added[k, tried[k]] >= target:
            k -= 1
            continue
        decisions += 1
        if decisions > _MOST or (decisions & 255 == 0 and passed(deadline)):
            for j in range(opened):
                exact.worker[request[j]] = OPEN
            return floor, found
        g = choice[k, tried[k]]
        exact.worker[i] = g
        _put(exact, i, g, 1)
        spent[k + 1] = spent[k] + added[k, tried[k]]
        tried[k] += 1
        if k + 1 == opened:
            cost = barriers(exact, slots)
            if 0 <= cost < target:
                target, found = cost, cost
                exact.best[:] = exact.worker
        else:
            k += 1
            tried[k] = 0
            count[k] = _rank(exact, request[k], slots, choice[k], added[k])
    return NEVER_LEAST, found
