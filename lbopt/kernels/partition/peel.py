"""Fill worker after worker exactly while the pool is rich: all but two requests are drawn, the last two are searched.

Two walkers from both ends of a zone of the sorted pool meet every pair whose sum is the target. With one request for
each 1 / density units of size, a walk through a zone of z requests meets about z * density / 2 of the target sums, so a
hit costs some 2 / density steps whatever the zone, and all N / c workers together 2 * range / c: 4e8 steps for sizes to
1e9 and 5 requests a worker, independent of N. Hence zones can be narrow, and all requests of a worker come from the
outside of the pool: what is left at the end lies close together, which is what the end needs (see `walk`).

Where requests are sparse, or the combinations of a narrow zone are used up, lists of larger subsets find a filling with
fewer steps and from further outside (see `fillings`).

The load is exactly the target, or short of it by half the worker's share of the slack where slack abounds.
"""

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.partition.extremes import farthest, locate, take_far
from lbopt.kernels.partition.fillings import RARE, all_fillings, outer_fillings
from lbopt.kernels.partition.state import Lists

#: How far the workers are filled, one record: place in the order of workers; entries of the pool, dead ones included;
#: entries that are placed already; room of the workers left less the sum of the pool, in units of the sizes; work done
#: in all, and for the present worker; calls of lists for the present worker.
PEELING = integers("next", "left", "dead", "slack", "work", "tried", "calls")
ENOUGH = 300_000_000  # work after which a worker is left to the end
SPARSE = 200_000  # steps for a pair from which on lists are cheaper
FEW = 500  # requests of which all pairs of pairs can be listed


@kernel
def peel(
    value: Ints,
    item: Ints,
    taken: Ints,
    state: Record,
    lack: Ints,
    slots: Ints,
    order: Ints,
    stop: int,
    work_limit: int,
    dice: Ints,
    lists: Lists,
    picks: Ints,
    merits: Floats,
    assignment: Ints,
) -> bool:
    """Fill the workers order[state.next:stop]; returns whether all were tried before `work_limit` or the deadline.

    `value` ascending and `item` (N,) are the pool, of which `state` says how much is left; `taken` (N,) marks what is
    placed. `lack` (G,) and `slots` (G,) are what each worker wants. Placed requests get their worker in `assignment`,
    all else keeps -1. `lists`, `picks` (cap, the largest of `slots`) and `merits` (cap,) are scratch, see
    `fillings`.

    Parameters
    ----------
    value, item, taken
        (N,) int64, sizes of the pool in tokens, ascending, their requests, and marks; changed in place.
    state
        PEELING, changed in place.
    lack, slots
        (G,) int64, room of each worker in tokens, and its slots.
    order, stop
        (W,) int64, workers in the order of filling, and how many are filled here.
    work_limit
        Work after which it pauses.
    dice
        (1,) int64, state of the draws; changed in place.
    lists, picks, merits
        Scratch, see `fillings`.
    assignment
        (N,) int64, worker of each request; changed in place.
    """
    limit = state.work + work_limit
    while state.next < stop:
        if state.work > limit or out_of_time(lists.clock):
            return False
        g = order[state.next]
        n = state.left
        c = slots[g]
        zone = max(2 * c, 16, n // 16)
        while state.tried > 8 * zone**3:  # its combinations are used up
            zone *= 2
        zone = min(n, zone)
        share = state.slack // (order.size - state.next)
        short = share // 2
        steps = 3 * ((value[n - 1] - value[0]) // n) // (short + 1)
        by_lists = c > 2 and (n <= FEW or (steps > SPARSE and c > 7))
        if by_lists and state.calls > n:  # enough of them
            by_lists = False
        if state.dead > (0 if by_lists else zone // 4):
            n = _compact(value, item, taken, n)
            state.work += state.left
            state.left, state.dead = n, 0
            zone = min(n, zone)
        before = state.work
        picked = picks[0]
        if by_lists:
            middle = float(value[n // 2])
            p = farthest(value, n, state.calls)
            hits, kind, work = all_fillings(value, n, c, lack[g], 2 * share, p, 1, middle, dice, lists, picks, merits)
            if kind == RARE:
                hits, kind, work = outer_fillings(
                    value, n, c, lack[g], 2 * share, 1, middle, dice, lists, picks, merits
                )
            state.calls += 1
            total = -1
            if hits > 0:
                picked = picks[best_of(merits, hits)]
                total = 0
                for k in range(c):
                    total += value[picked[k]]
            state.work += work
        else:
            total = _fill(value, taken, n, lack[g], c, short, zone, dice, picked, state)
        if total < 0:
            state.tried += state.work - before
            if state.tried > ENOUGH:  # left to the end
                state.tried = state.calls = 0
                state.next += 1
            continue
        for k in range(c):
            taken[picked[k]] = 1
            assignment[item[picked[k]]] = g
        state.dead += c
        state.slack -= lack[g] - total
        state.tried = state.calls = 0
        state.next += 1
    return True


@kernel
def best_of(merits: Floats, hits: int) -> int:
    """Row of the greatest merit."""
    best = 0
    for h in range(1, hits):
        if merits[h] > merits[best]:
            best = h
    return best


@kernel
def _fill(
    value: Ints, taken: Ints, n: int, lack: int, c: int, short: int, zone: int, dice: Ints, picked: Ints, state: Record
) -> int:
    """One try: write c positions to `picked` whose sum is in [lack - short, lack], and return it; or -1.

    Parameters
    ----------
    value, taken, n
        (N,) int64, sizes of the pool in tokens, ascending in the first n, and marks, changed in place.
    lack, c, short
        The largest sum in tokens, the number of requests, and how much the sum may fall short.
    zone
        Positions from which one is drawn.
    dice
        (1,) int64, state of the draws; changed in place.
    picked
        (c,) int64, positions; written.
    state
        PEELING; its work is counted in place.
    """
    keep = min(2, c)
    rest = take_far(value, n, lack, c, keep, zone, dice, taken, picked)
    middle = locate(value, n, rest // keep)
    begin = min(max(0, middle - zone), max(0, n - 2 * zone))
    end = min(n, max(begin + 2 * zone, 2))
    total = -1
    if keep == 2:
        i, j, steps = _pair(value, taken, begin, end, rest - short, rest)
        state.work += steps + 8 * c
        if i >= 0:
            picked[c - 2], picked[c - 1] = i, j
            total = lack - rest + value[i] + value[j]
    else:
        i = locate(value, n, rest + 1) - 1
        while i >= 0 and taken[i]:
            i -= 1
        state.work += 32
        if i >= 0 and value[i] >= rest - short:
            picked[0] = i
            total = value[i]
        else:
            state.work += ENOUGH // 4  # nothing is drawn here: other tries are no better
    if total < 0:
        for k in range(c - keep):
            taken[picked[k]] = 0
    return total


@kernel
def _pair(value: Ints, taken: Ints, begin: int, end: int, low: int, high: int) -> tuple[int, int, int]:
    """Two free positions of value[begin:end] whose sum lies in [low, high], or -1, -1; and the steps taken.

    Parameters
    ----------
    value, taken
        (N,) int64, sizes in tokens, ascending, and marks.
    begin, end, low, high
        The part that is searched, and the sums, tokens.
    """
    i, j = begin, end - 1
    while i < j:
        total = value[i] + value[j]
        if low <= total <= high:
            if not taken[i] and not taken[j]:
                return i, j, end - begin - (j - i)
            if taken[i]:
                i += 1
            else:
                j -= 1
        else:
            small = 1 if total < low else 0
            i += small
            j -= 1 - small
    return -1, -1, end - begin


@kernel
def _compact(value: Ints, item: Ints, taken: Ints, n: int) -> int:
    """Close the gaps that placed requests left; returns how many are left.

    Parameters
    ----------
    value, item, taken, n
        (N,) int64, sizes, requests and marks of the pool, of which n are in use; changed in place.
    """
    kept = 0
    for p in range(n):
        if not taken[p]:
            value[kept] = value[p]
            item[kept] = item[p]
            taken[kept] = 0
            kept += 1
    return kept
