"""Exhaustion over a window: of all assignments of a given cost the one with the least sorted loads.

Worker after worker takes its requests, slot by slot, the largest class first. A worker that is done leaves idle work
under the maxima reached so far, which only grow: a branch is left when that exceeds the cost. It is also left when
what the loads are at least, sorted from the largest down, is more than the best vector known. Of workers alike the
later one takes no more than the earlier one, compared as words are.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.leximax.even import compared, sort_alone

#: How a search ends.
DONE, OPEN = 1, 0

#: State of a search. `place`: in hand; `steps`: work done; `gains`: improvements.
EXHAUSTION = integers("place", "steps", "gains")


class Window(NamedTuple):
    """W open workers, those alike side by side; K classes of requests; T steps; P free slots, worker by worker."""

    work: Ints  # (K, T) loads of a request of each class; the empty request, where there are fewer than slots, has none
    forced: Ints  # (K,) whether the requests of a class must be admitted
    base: Ints  # (W, T)
    begin: Ints  # (W + 1,) first place of each worker
    owner: Ints  # (P,) worker of each place
    alike: Ints  # (W,) whether a worker equals the one before
    closed: Ints  # (C, T) loads of workers without free slots
    cost: int  # tokens, not to be exceeded


class Exhaustion(NamedTuple):
    """The state of a search; changes in place."""

    state: Record  # EXHAUSTION
    avail: Ints  # (K,) requests left
    chosen: Ints  # (P + 1,) class at each place; at the place in hand, the class tried last
    tied: Ints  # (P + 1,) whether the worker is equal so far to the one alike before it
    loads: Ints  # (W, T) with what is chosen
    best: Ints  # ((W + C) T,) the best loads, largest first
    answer: Ints  # (P,) their classes, -1 in front where they came from elsewhere


@kernel
def exhaust(window: Window, search: Exhaustion, limit: int) -> int:
    """Go on for about `limit` steps; DONE where everything was seen."""
    state, avail, chosen, tied, loads = search.state, search.avail, search.chosen, search.tied, search.loads
    begin, owner = window.begin, window.owner
    K, T, P = window.work.shape[0], window.work.shape[1], owner.size
    stop = state.steps + limit
    p = state.place
    while p >= 0:
        if state.steps >= stop:
            state.place = p
            return OPEN
        state.steps += 1
        if p == P:
            _leaf(window, search)
            p -= 1
            continue
        w = owner[p]
        q = p - begin[w]
        k = chosen[p]
        if k < K:  # take the last one back
            avail[k] += 1
            for h in range(T):
                loads[w, h] -= window.work[k, h]
        else:  # a new place: no larger class than before, and no larger word than that of the worker alike
            tied[p] = 1 if window.alike[w] == 1 and (q == 0 or _still_tied(search, begin, w, p)) else 0
            if q > 0:
                k = chosen[p - 1] + 1
            if tied[p] == 1:
                k = min(k, chosen[begin[w - 1] + q] + 1)
        k -= 1
        while k >= 0 and avail[k] == 0:
            k -= 1
        if k < 0:
            chosen[p] = K
            p -= 1
            continue
        chosen[p] = k
        avail[k] -= 1
        for h in range(T):
            loads[w, h] += window.work[k, h]
        if p + 1 < begin[w + 1] or _promising(window, search, w + 1):
            p += 1
            chosen[p] = K
    state.place = -1
    return DONE


@kernel
def _still_tied(search: Exhaustion, begin: Ints, w: int, p: int) -> bool:
    """Whether the worker has so far the same classes as the one alike before it.

    Parameters
    ----------
    begin
        int64 (W + 1,): first place of each worker.
    w, p
        Worker, and its place in hand.
    """
    return search.tied[p - 1] == 1 and search.chosen[p - 1] == search.chosen[begin[w - 1] + p - 1 - begin[w]]


@kernel
def _promising(window: Window, search: Exhaustion, done: int) -> bool:
    """Whether the first `done` workers leave a chance of something better."""
    loads, closed = search.loads, window.closed
    W, T = loads.shape
    search.state.steps += (W + closed.shape[0]) * T // 4
    owed = 0
    for k in range(search.avail.size):
        owed += search.avail[k] * window.forced[k]
    if owed > window.owner.size - window.begin[done]:
        return False
    idle = 0
    for h in range(T):
        top = 0
        for c in range(closed.shape[0]):
            top = max(top, closed[c, h])
        for w in range(W):
            top = max(top, loads[w, h])
        for c in range(closed.shape[0]):
            idle += top - closed[c, h]
        for w in range(done):
            idle += top - loads[w, h]
    if idle > window.cost:
        return False
    return compared(_sorted(search, closed), search.best) < (0 if done == W else 1)


@kernel
def _sorted(search: Exhaustion, closed: Ints) -> Ints:
    """Return all loads, ascending, those of workers that are not done as far as they go."""
    T = closed.shape[1]
    everything = np.empty(search.best.size, dtype=np.int64)
    at = 0
    for rows in (search.loads, closed):
        for g in range(rows.shape[0]):
            for h in range(T):
                everything[at] = rows[g, h]
                at += 1
    sort_alone(everything)
    return everything


@kernel
def _leaf(window: Window, search: Exhaustion) -> None:
    """Keep an assignment that is better; its cost was looked at with its last worker."""
    everything = _sorted(search, window.closed)
    if compared(everything, search.best) < 0:
        search.state.gains += 1
        for j in range(everything.size):
            search.best[j] = everything[everything.size - 1 - j]
        for p in range(window.owner.size):
            search.answer[p] = search.chosen[p]
