"""All that one worker can run: lists of sets of requests that it could be given in a placement below a target.

A worker's set says for every request whether it runs there. It is built request by request in the order of the starts.
After the requests of a step are decided, the worker holds at most B, and at least so many that the others need not
hold more than B each; where all slots are in use both are equal, so that a set is decided by its first B requests
except where several requests start together. Once a window is passed the worker's tokens x there are known, and with
W - x tokens left to the other G - 1 workers the window costs at least max(x, ceil((W - x) / (G - 1)), floor). A set
whose windows cost the target or more belongs to no placement below it, and neither does a beginning of one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed

Words = NDArray[np.uint64]
Shorts = NDArray[np.int32]

#: Bins of the excess over the floors in which sets are counted.
BINS = 256

#: What became of a listing: finished, cut by the deadline, out of room.
DONE, LATE, FULL = 0, 1, 2

LISTING = integers(
    "workers",
    "budget",  # G - 1 times what a set's windows may cost at most above the floors
    "shift",  # bits that loads are shortened by in the list
    "sets",  # sets found
    "nodes",  # decisions tried
    "deadline",
)


@by_reference
class Starts(NamedTuple):
    """Requests by the step in which they start, and what a worker may hold then."""

    wave: Ints  # (N,) number of the starting step of each request
    begin: Ints  # (E + 1,) its first request
    least: Ints  # (E,) fewest requests that a worker holds after it
    most: Ints  # (E,) most
    ended: Ints  # (N,) requests in the order of their ends
    ended_from: Ints  # (E + 1,) where in `ended` those begin that end after the starting step before this one
    window: Ints  # (E + 1,) first window of each starting step, and C
    tokens: Ints  # (N, C)
    first: Ints  # (N,)
    last: Ints  # (N,)
    total: Ints  # (C,) W
    floor: Ints  # (C,)


@by_reference
class Listed(NamedTuple):
    """The sets that were found."""

    mask: Words  # (., words) request i is bit i % 64 of word i // 64
    load: Shorts  # (., C) tokens in each window, in the order of `rank`, shortened
    excess: Ints  # (.,) G - 1 times what the windows of a set cost above their floors
    rank: Ints  # (C,) the windows in the order in which bounds look at them
    count: Ints  # (BINS,) sets by their excess, BINS of which are the budget


@kernel
def _put(starts: Starts, load: Ints, i: int, sign: int) -> None:
    for c in range(starts.first[i], starts.last[i]):
        load[c] += sign * starts.tokens[i, c]


@kernel
def _excess(starts: Starts, others: int, load: Ints, low: int, high: int) -> int:
    """Return G - 1 times what windows [low, high) cost above their floors."""
    total = 0
    for c in range(low, high):
        cost = max(others * load[c], starts.total[c] - load[c])
        total += max(cost - others * starts.floor[c], 0)
    return total


@kernel
def _keep(listed: Listed, state: Record, load: Ints, chosen: Ints, excess: int) -> bool:
    """Count a set, and write it down where the list has room; return whether it had."""
    place = min(excess * BINS // max(state.budget, 1), BINS - 1)
    listed.count[place] += 1
    row = state.sets
    state.sets += 1
    if listed.mask.shape[0] == 0:  # only counted
        return True
    if row >= listed.mask.shape[0]:
        return False
    for i in range(chosen.size):
        if chosen[i] == 1:
            listed.mask[row, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    listed.excess[row] = excess
    for k in range(listed.rank.size):
        listed.load[row, k] = load[listed.rank[k]] >> state.shift
    return True


@kernel
def list_sets(starts: Starts, listed: Listed, state: Record) -> int:
    """List the sets of a worker within the budget; return `DONE`, `LATE` or `FULL`.

    Parameters
    ----------
    starts
        The timetable, as declared above.
    listed
        Changed; rows of `mask` are zeros at first. With no rows, sets are only counted.
    state
        `LISTING`; ``sets`` and ``nodes`` are 0 at first and are changed.
    """
    requests, others = starts.wave.size, max(state.workers - 1, 1)
    load = np.zeros(starts.total.size, np.int64)
    chosen = np.full(requests + 1, -1, np.int64)  # -1 not decided yet, 1 runs here, 0 elsewhere
    held = np.zeros(requests + 1, np.int64)  # before each decision
    spent = np.zeros(requests + 1, np.int64)  # excess before each decision
    i = 0
    while i >= 0:
        state.nodes += 1
        if state.nodes & 4095 == 0 and passed(state.deadline):
            return LATE
        if i == requests:
            if held[i] >= 0 and not _keep(listed, state, load, chosen[:requests], spent[i]):
                return FULL
            i -= 1
            continue
        group = starts.wave[i]
        if chosen[i] == -1 and i == starts.begin[group] and i > 0:
            for e in range(starts.ended_from[group], starts.ended_from[group + 1]):
                held[i] -= chosen[starts.ended[e]]
        # Runs here first, then elsewhere, then back to the decision before.
        if chosen[i] == -1:
            chosen[i] = 1
            _put(starts, load, i, 1)
        elif chosen[i] == 1:
            chosen[i] = 0
            _put(starts, load, i, -1)
        else:
            chosen[i] = -1
            i -= 1
            continue
        now, left = held[i] + chosen[i], starts.begin[group + 1] - i - 1
        if now > starts.most[group] or now + left < starts.least[group]:
            continue
        cost = spent[i]
        if left == 0:
            cost += _excess(starts, others, load, starts.window[group], starts.window[group + 1])
            if cost > state.budget:
                continue
        i += 1
        held[i], spent[i] = now, cost
    return DONE
