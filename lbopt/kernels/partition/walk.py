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

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, integers
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


@kernel
def walk(
    value: Ints,
    lack: Ints,
    slots: Ints,
    holder: Ints,
    order: Ints,
    state: Record,
    code: Ints,
    known: Ints,
    work_limit: int,
    dice: Ints,
    lists: Lists,
    picks: Ints,
    merits: Floats,
) -> tuple[int, int]:
    """Fill J workers with the requests `value` (n,), ascending, n = sum of `slots` (J,); returns (found, work).

    Worker j takes exactly slots[j] >= 1 requests of sum at most lack[j]. `holder` (n,) is the worker of each request,
    -1 in the pool; `order` (J,) lists the workers, unfilled first; they and `state` are changed in place, and the walk
    can be taken up again. `code` (n,) are random numbers below 2^61, whose sums name the pools in the hash table
    `known`, which starts as 0. Where 1 is returned, no request is in the pool. The rest is scratch, see `fillings`.

    Parameters
    ----------
    value, lack, slots
        (n,), (J,) and (J,) int64: sizes, ascending, and room of each worker, tokens; its slots.
    holder, order, state
        (n,) and (J,) int64, and WALK; changed in place.
    code, known
        (n,) int64, and the hash table, int64, changed in place.
    work_limit
        Work after which it pauses; it does so at the deadline, too.
    dice
        (1,) int64, state of the draws; changed in place.
    lists, picks, merits
        Scratch, see `fillings`.
    """
    J, n = slots.size, value.size
    place = np.empty(n, np.int64)
    number = np.empty(n, np.int64)
    own = np.empty((TRIED, picks.shape[1]), np.int64)
    work = 0
    while work < work_limit and not out_of_time(lists.clock):
        b = state.unfilled
        if b <= 1:
            for p in range(n):
                if holder[p] < 0:
                    holder[p] = order[0]
            state.unfilled = 0
            return 1, work
        if state.failed == 0 or b == J:  # no filled worker is left
            state.failed = 1
            done, filled = _fill_one(
                value, lack, slots, holder, order, state, code, known, dice, lists, picks, merits, place, number
            )
            work += done
            if filled or b == J:
                state.failed = 0
                continue
        k = b + draw(dice, J - b)
        j = order[k]
        if state.failed > PATIENCE * (J - b):
            _empty(value, lack, holder, state, j)
            order[k], order[b] = order[b], order[k]
            state.unfilled += 1
            state.failed = 1
            continue
        # fill a filled worker otherwise
        state.failed += 1
        size = _gather(value, holder, j, place, number)
        slack = state.slack + lack[j]
        for p in range(size):
            if holder[place[p]] == j:
                slack -= number[p]
        short = (2 * slack + b) // (b + 1)
        hits, done = _search(
            number, size, slots[j], lack[j], short, -1, 0, float(value[n // 2]), dice, lists, picks, merits
        )
        work += done
        others = 0  # pools that were not there before
        while others < TRIED:
            h = _new_pool(place, size, picks, merits, hits, slots[j], code, known, state, dice)
            if h < 0:
                break
            for s in range(slots[j]):
                own[others, s] = place[picks[h, s]]
            others += 1
        for h in range(others):
            _empty(value, lack, holder, state, j)
            for s in range(slots[j]):
                holder[own[h, s]] = j
                state.slack += value[own[h, s]]
            state.slack -= lack[j]
            state.failed = 1
            done, filled = _fill_one(
                value, lack, slots, holder, order, state, code, known, dice, lists, picks, merits, place, number
            )
            work += done
            if filled:
                state.failed = 0
                break
    return 0, work


@kernel
def _empty(value: Ints, lack: Ints, holder: Ints, state: Record, j: int) -> None:
    """Throw the requests of worker j into the pool.

    Parameters
    ----------
    value, lack
        (n,) and (J,) int64, sizes and room of each worker, tokens.
    holder, state, j
        (n,) int64 and WALK, changed in place; the worker.
    """
    for p in range(value.size):
        if holder[p] == j:
            holder[p] = -1
            state.slack -= value[p]
    state.slack += lack[j]


@kernel
def _fill_one(
    value: Ints,
    lack: Ints,
    slots: Ints,
    holder: Ints,
    order: Ints,
    state: Record,
    code: Ints,
    known: Ints,
    dice: Ints,
    lists: Lists,
    picks: Ints,
    merits: Floats,
    place: Ints,
    number: Ints,
) -> tuple[int, bool]:
    """Fill one of the unfilled workers from the pool, if that can be done; returns (work, whether it was).

    Parameters
    ----------
    value, lack, slots
        (n,), (J,) and (J,) int64: sizes, ascending, and room of each worker, tokens; its slots.
    holder, order, state
        (n,) and (J,) int64, and WALK; changed in place.
    code, known
        (n,) int64, and the hash table, int64, changed in place.
    dice
        (1,) int64, state of the draws; changed in place.
    lists, picks, merits, place, number
        Scratch, see `fillings` and `_gather`.
    """
    b = state.unfilled
    size = _gather(value, holder, -1, place, number)
    twins = True
    for i in range(1, b):
        g, h = order[i], order[0]
        twins = twins and lack[g] == lack[h] and slots[g] == slots[h]
    short = state.slack if b == 2 else (2 * state.slack + b - 1) // b
    middle = float(value[value.size // 2])
    first = draw(dice, b)
    work = 0
    for i in range(1 if twins or b == 2 else b):  # what fits the first of twins fits all, and of two the other
        k = (first + i) % b
        j = order[k]
        fixed = farthest(number, size, 0) if twins and slots[j] > 1 else -1
        hits, done = _search(number, size, slots[j], lack[j], short, fixed, 1, middle, dice, lists, picks, merits)
        work += done
        h = _new_pool(place, size, picks, merits, hits, slots[j], code, known, state, dice)
        if h >= 0:
            for s in range(slots[j]):
                holder[place[picks[h, s]]] = j
                state.slack += number[picks[h, s]]
            state.slack -= lack[j]
            order[k], order[b - 1] = order[b - 1], order[k]
            state.unfilled -= 1
            return work, True
    return work, False


@kernel
def _new_pool(
    place: Ints,
    size: int,
    picks: Ints,
    merits: Floats,
    hits: int,
    slots: int,
    code: Ints,
    known: Ints,
    state: Record,
    dice: Ints,
) -> int:
    """Choose one of the fillings that leave a pool not seen before, or -1; of two the one of greater merit.

    Parameters
    ----------
    place, size
        (n,) int64, positions of what may be used, and how many there are.
    picks, merits, hits
        The fillings, see `fillings`, and how many there are.
    slots
        Requests of a filling.
    code, known, state
        (n,) int64; the hash table, int64, and WALK, changed in place.
    dice
        (1,) int64, state of the draws; changed in place.
    """
    if hits == 0:
        return -1
    name = 0
    for p in range(size):
        name = (name + code[place[p]]) % MODULUS
    first = draw(dice, hits)
    other = draw(dice, hits)
    if merits[other] > merits[first]:
        first = other
    for i in range(hits):
        h = (first + i) % hits
        rest = name
        for s in range(slots):
            rest = (rest + MODULUS - code[place[picks[h, s]]]) % MODULUS
        if _is_new(rest + 1, known, state):
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
def _search(
    number: Ints,
    size: int,
    slots: int,
    lack: int,
    short: int,
    fixed: int,
    thorough: int,
    middle: float,
    dice: Ints,
    lists: Lists,
    picks: Ints,
    merits: Floats,
) -> tuple[int, int]:
    """Fillings, by whichever way; returns (how many, work).

    Parameters
    ----------
    number, size
        (n,) int64, sizes in tokens, ascending, of which `size` may be used.
    slots, lack, short
        Slots of the worker; the largest sum, and how much it may fall short, tokens.
    fixed, thorough, middle
        See `all_fillings`.
    dice
        (1,) int64, state of the draws; changed in place.
    lists, picks, merits
        Scratch and the fillings, see `fillings`.
    """
    hits, kind, work = all_fillings(
        number, size, slots, lack, short, fixed, thorough, middle, dice, lists, picks, merits
    )
    if kind == RARE:
        hits, _, work = outer_fillings(number, size, slots, lack, short, 0, middle, dice, lists, picks, merits)
    return hits, work + 50


@kernel
def _gather(value: Ints, holder: Ints, j: int, place: Ints, number: Ints) -> int:
    """Write positions and sizes of what is in the pool or with worker j; returns how many.

    Parameters
    ----------
    value, holder, j
        (n,) int64, sizes in tokens, and the worker of each request; the worker.
    place, number
        (n,) int64; written.
    """
    size = 0
    for p in range(value.size):
        if holder[p] < 0 or holder[p] == j:
            place[size] = p
            number[size] = value[p]
            size += 1
    return size
