"""All that one worker can run: lists of sets of requests that it could be given in a placement below a target.

A worker's set says for every request whether it runs there. It is built request by request in the order of the starts.
After the requests of a step are decided, the worker holds at most B, and at least so many that the others need not
hold more than B each; where all slots are in use both are equal, so that a set is decided by its first B requests
except where several requests start together. Once a window is passed the worker's tokens x there are known, and with
W - x tokens left to the other G - 1 workers the window costs at least max(x, ceil((W - x) / (G - 1)), floor). A set
whose windows cost the target or more belongs to no placement below it, and neither does a beginning of one.

Requests of few tokens may be left open, so that a set stands for all sets that differ only in these. W then leaves them
out, since this worker may run them as well as the others; in the floors they count. Each may take a slot or leave one,
which loosens what a worker has to hold.

A list that is full drops the half of its sets that cost most, and goes on with the budget that is left: it ends with
all sets within that budget.
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

#: What became of a listing: finished, or cut by the deadline.
DONE, LATE = 0, 1

LISTING = integers(
    "workers",
    "budget",  # G - 1 times what a set's windows may cost at most above the floors; falls where the list is full
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
    deficit: Ints  # (E,) so many requests left open start in the same step; more than N where slots are empty
    surplus: Ints  # (E,) so many of them have just ended; more than N where slots are empty
    ended: Ints  # (N,) requests in the order of their ends
    ended_from: Ints  # (E + 1,) where in `ended` those begin that end after the starting step before this one
    heirs_from: Ints  # (E,) where in `ended` those begin that end as this step begins
    window: Ints  # (E + 1,) first window of each starting step, and C
    tokens: Ints  # (N, C)
    first: Ints  # (N,)
    last: Ints  # (N,)
    total: Ints  # (C,) W, without the requests that are left open
    floor: Ints  # (C,)


@by_reference
class Listed(NamedTuple):
    """The sets that were found."""

    mask: Words  # (., words) request i is bit i % 64 of word i // 64
    load: Shorts  # (., C) tokens in each window, in the order of `rank`, shortened
    excess: Ints  # (.,) G - 1 times what the windows of a set cost above their floors
    rank: Ints  # (C,) the windows in the order in which bounds look at them


@kernel
def put(starts: Starts, load: Ints, i: int, sign: int) -> None:
    """Add a request to the loads of a worker, or take it away.

    Parameters
    ----------
    starts
        The timetable.
    load
        int64, (C,): changed.
    i
        Request.
    sign
        1 or -1.
    """
    for c in range(starts.first[i], starts.last[i]):
        load[c] += sign * starts.tokens[i, c]


@kernel
def _excess(starts: Starts, others: int, load: Ints, low: int, high: int) -> int:
    """Return G - 1 times what windows [low, high) cost above their floors.

    Parameters
    ----------
    starts
        The timetable.
    others
        G - 1.
    load
        int64, (C,): tokens of the worker in each window.
    low, high
        First window, and the one after the last.
    """
    total = 0
    for c in range(low, high):
        cost = max(others * load[c], starts.total[c] - load[c])
        total += max(cost - others * starts.floor[c], 0)
    return total


@kernel
def _shrink(listed: Listed, state: Record) -> None:
    """Drop the half of the sets that cost most, and lower the budget to what is left."""
    ascending = np.sort(listed.excess[: state.sets])
    limit = ascending[state.sets // 2]  # sets below it stay; all that are dropped cost it or more
    kept = 0
    for row in range(state.sets):
        if listed.excess[row] < limit:
            listed.excess[kept] = listed.excess[row]
            listed.mask[kept] = listed.mask[row]
            listed.load[kept] = listed.load[row]
            kept += 1
    listed.mask[kept : state.sets] = np.uint64(0)
    state.sets = kept
    state.budget = limit - 1


@kernel
def _keep(listed: Listed, state: Record, load: Ints, chosen: Ints, excess: int) -> None:
    """Write a set down.

    Parameters
    ----------
    listed
        The list, changed.
    state
        `LISTING`; ``sets`` is changed.
    load
        int64, (C,): tokens of the worker in each window.
    chosen
        int64, (n,): 1 where the request runs here.
    excess
        G - 1 times what the windows cost above their floors.
    """
    if state.sets == listed.mask.shape[0]:
        _shrink(listed, state)
        if excess > state.budget:
            return
    row = state.sets
    state.sets += 1
    for i in range(chosen.size):
        if chosen[i] == 1:
            listed.mask[row, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    listed.excess[row] = excess
    for k in range(listed.rank.size):
        listed.load[row, k] = load[listed.rank[k]] >> state.shift


@kernel
def fits(starts: Starts, chosen: Ints, wave: int) -> bool:
    """Return whether a worker with full slots takes as many requests as it has lost, but for those left open."""
    taken = 0
    for i in range(starts.begin[wave], starts.begin[wave + 1]):
        taken += chosen[i]
    for e in range(starts.heirs_from[wave], starts.ended_from[wave + 1]):
        taken -= chosen[starts.ended[e]]
    return -starts.deficit[wave] <= taken <= starts.surplus[wave]


@kernel
def list_sets(starts: Starts, listed: Listed, state: Record) -> int:
    """List the sets of a worker within the budget; return `DONE` or `LATE`.

    Parameters
    ----------
    starts
        The timetable, as declared above.
    listed
        Changed; rows of `mask` are zeros at first, and there is more than one.
    state
        `LISTING`; ``sets`` and ``nodes`` are 0 at first and are changed, ``budget`` where the list is full.
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
            if spent[i] <= state.budget:
                _keep(listed, state, load, chosen[:requests], spent[i])
            i -= 1
            continue
        wave = starts.wave[i]
        if chosen[i] == -1 and i == starts.begin[wave] and i > 0:
            for e in range(starts.ended_from[wave], starts.ended_from[wave + 1]):
                held[i] -= chosen[starts.ended[e]]
        # Runs here first, then elsewhere, then back to the decision before.
        if chosen[i] == -1:
            chosen[i] = 1
            put(starts, load, i, 1)
        elif chosen[i] == 1:
            chosen[i] = 0
            put(starts, load, i, -1)
        else:
            chosen[i] = -1
            i -= 1
            continue
        now, left = held[i] + chosen[i], starts.begin[wave + 1] - i - 1
        if now > starts.most[wave] or now + left < starts.least[wave]:
            continue
        cost = spent[i]
        if left == 0:
            cost += _excess(starts, others, load, starts.window[wave], starts.window[wave + 1])
            if cost > state.budget or not fits(starts, chosen, wave):
                continue
        i += 1
        held[i], spent[i] = now, cost
    return DONE
