"""The end: a few workers are unfilled, their requests form a pool; filled workers lend theirs until all can be filled.

Let b workers be unfilled. If some filling of one of them is found in the pool, b falls by one; at b = 1 what is left
fits, because the sums agree. Otherwise a filled worker is taken at random, its requests are thrown into the pool, and
it is filled with others: the pool changes, nothing is lost, and the first step is tried again. If no worker can be
filled otherwise, for long, one is emptied: b grows by one. Pools are remembered, and no exchange leads back to one.

Why it works. With E(b) the expected fillings in the pool of b workers, a pool of b workers can be split with a
probability S(b) = E(2) * ... * E(b), so 1 / S(b) pools must be seen, and each costs 1 / E(b + 1) tries, where a try
lists the half-subsets of b + 1 workers' requests. S(b) falls steeply with b, so the walk should live at the smallest b
at which it is not caught: where the number of helpers times E(b + 1) exceeds 1. The rule above finds that b by itself.
For 5 requests a worker and one request for each 1,000 units of size it is b = 3 and S(3) = 1e-5: some seconds; at one
for each 4,000 it is b = 4 and S(4) = 4e-9: hopeless without slack. Slack widens each window (see `fillings`): with a
slack of s in the pool S(b) grows by about C(s + b - 1, b - 1).
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.draw import draw
from lbopt.kernels.partition.extremes import farthest
from lbopt.kernels.partition.fillings import RARE, all_fillings, outer_fillings
from lbopt.kernels.partition.state import Lists

KEPT = 64  # fillings kept of one search
TRIED = 8  # pools that one exchange may lead to
PATIENCE = 2  # tries for each filled worker before one is emptied

#: How far the walk is, one record: unfilled workers, which stand first in `order`; their room less the sum of the pool,
#: in units of the sizes; tries since the last success; pools that are remembered.
WALK = integers("unfilled", "slack", "failed", "remembered")

MODULUS = (1 << 61) - 1


@by_reference
class Walk(NamedTuple):
    """J workers and the requests that fill them, n = sum of the slots; a walk can be taken up again."""

    value: Ints  # (n,) sizes, ascending
    lack: Ints  # (J,) the most that a worker takes, in units of the sizes
    slots: Ints  # (J,) and of exactly how many requests
    holder: Ints  # (n,) worker of each request, -1 in the pool
    order: Ints  # (J,) the workers, unfilled ones first
    state: Record  # WALK
    code: Ints  # (n,) random numbers below 2^61, whose sums name the pools
    known: Ints  # hash table of pools that were seen, 0 at first
    place: Ints  # (n,) scratch: positions of what may be used
    number: Ints  # (n,) and their sizes


@kernel
def walk(w: Walk, lists: Lists, work_limit: int) -> tuple[int, int]:
    """Fill the workers; return (1 where all are filled, work). It pauses after `work_limit`, and at the deadline."""
    state, order, J = w.state, w.order, w.slots.size
    work = 0
    while work < work_limit and not out_of_time(lists.clock):
        b = state.unfilled
        if b <= 1:
            for p in range(w.value.size):
                if w.holder[p] < 0:
                    w.holder[p] = order[0]
            state.unfilled = 0
            return 1, work
        if state.failed == 0 or b == J:  # no filled worker is left
            state.failed = 1
            done, filled = _fill_one(w, lists)
            work += done
            if filled or b == J:
                state.failed = 0
                continue
        k = b + draw(lists.dice, J - b)
        if state.failed > PATIENCE * (J - b):
            _empty(w, w.order[k])
            w.order[k], w.order[b] = w.order[b], w.order[k]
            state.unfilled += 1
            state.failed = 1
            continue
        state.failed += 1
        work += _fill_otherwise(w, lists, w.order[k])
    return 0, work


@kernel
def _fill_otherwise(w: Walk, lists: Lists, j: int) -> int:
    """Fill a filled worker with others, until that lets one of the unfilled be filled; return the work."""
    state, slots, b = w.state, w.slots[j], w.state.unfilled
    size = _gather(w, j)
    slack = state.slack + w.lack[j]
    for p in range(size):
        if w.holder[w.place[p]] == j:
            slack -= w.number[p]
    short = (2 * slack + b) // (b + 1)
    hits, work = _search(w, lists, size, j, short, -1, 0)
    own = np.empty((TRIED, slots), np.int64)
    others = 0  # pools that were not there before
    while others < TRIED:
        h = _new_pool(w, lists, size, hits, slots)
        if h < 0:
            break
        for s in range(slots):
            own[others, s] = w.place[lists.picks[h, s]]
        others += 1
    for h in range(others):
        _empty(w, j)
        for s in range(slots):
            w.holder[own[h, s]] = j
            state.slack += w.value[own[h, s]]
        state.slack -= w.lack[j]
        state.failed = 1
        done, filled = _fill_one(w, lists)
        work += done
        if filled:
            state.failed = 0
            break
    return work


@kernel
def _empty(w: Walk, j: int) -> None:
    """Throw the requests of worker j into the pool."""
    for p in range(w.value.size):
        if w.holder[p] == j:
            w.holder[p] = -1
            w.state.slack -= w.value[p]
    w.state.slack += w.lack[j]


@kernel
def _fill_one(w: Walk, lists: Lists) -> tuple[int, bool]:
    """Fill one of the unfilled workers from the pool, if that can be done; returns (work, whether it was)."""
    state, order, lack, slots = w.state, w.order, w.lack, w.slots
    b = state.unfilled
    size = _gather(w, -1)
    twins = True
    for i in range(1, b):
        g, h = order[i], order[0]
        twins = twins and lack[g] == lack[h] and slots[g] == slots[h]
    short = state.slack if b == 2 else (2 * state.slack + b - 1) // b
    first = draw(lists.dice, b)
    work = 0
    for i in range(1 if twins or b == 2 else b):  # what fits the first of twins fits all, and of two the other
        k = (first + i) % b
        j = order[k]
        fixed = farthest(w.number[:size], 0) if twins and slots[j] > 1 else -1
        hits, done = _search(w, lists, size, j, short, fixed, 1)
        work += done
        h = _new_pool(w, lists, size, hits, slots[j])
        if h >= 0:
            for s in range(slots[j]):
                p = lists.picks[h, s]
                w.holder[w.place[p]] = j
                state.slack += w.number[p]
            state.slack -= lack[j]
            order[k], order[b - 1] = order[b - 1], order[k]
            state.unfilled -= 1
            return work, True
    return work, False


@kernel
def _new_pool(w: Walk, lists: Lists, size: int, hits: int, slots: int) -> int:
    """Choose one of the fillings that leave a pool not seen before, or -1; of two the one of greater merit."""
    if hits == 0:
        return -1
    name = 0
    for p in range(size):
        name = (name + w.code[w.place[p]]) % MODULUS
    first = draw(lists.dice, hits)
    other = draw(lists.dice, hits)
    if lists.merits[other] > lists.merits[first]:
        first = other
    for i in range(hits):
        h = (first + i) % hits
        rest = name
        for s in range(slots):
            rest = (rest + MODULUS - w.code[w.place[lists.picks[h, s]]]) % MODULUS
        if _is_new(rest + 1, w.known, w.state):
            return h
    return -1


@kernel
def _is_new(name: int, known: Ints, state: Record) -> bool:
    """Put a name into the hash table; tell whether it was not there."""
    if 2 * state.remembered > known.size:
        known[:] = 0
        state.remembered = 0
    at = name % known.size
    while known[at] != 0:
        if known[at] == name:
            return False
        at = (at + 1) % known.size
    known[at] = name
    state.remembered += 1
    return True


@kernel
def _search(w: Walk, lists: Lists, size: int, j: int, short: int, fixed: int, thorough: int) -> tuple[int, int]:
    """Look for fillings of worker j among what was gathered, by whichever way; returns (how many, work)."""
    number, middle = w.number[:size], float(w.value[w.value.size // 2])
    hits, kind, work = all_fillings(lists, number, w.slots[j], w.lack[j], short, fixed, thorough, middle)
    if kind == RARE:
        hits, _, work = outer_fillings(lists, number, w.slots[j], w.lack[j], short, 0, middle)
    return hits, work + 50


@kernel
def _gather(w: Walk, j: int) -> int:
    """Write positions and sizes of what is in the pool or with worker j; return how many."""
    size = 0
    for p in range(w.value.size):
        if w.holder[p] < 0 or w.holder[p] == j:
            w.place[size] = p
            w.number[size] = w.value[p]
            size += 1
    return size
