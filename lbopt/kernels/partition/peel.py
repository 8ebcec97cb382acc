"""Fill worker after worker exactly while the pool is rich: all but two requests are drawn, the last two are searched.

Two walkers from both ends of a zone of the sorted pool meet every pair whose sum is wanted. With one request for each
1 / density units of size, a walk through a zone of z requests meets about z * density / 2 of the wanted sums, so a hit
costs some 2 / density steps whatever the zone, and all N / c workers together 2 * range / c: 4e8 steps for sizes to
1e9 and 5 requests a worker, independent of N. Hence zones can be narrow, and all requests of a worker come from the
outside of the pool: what is left at the end lies close together, which is what the end needs (see `walk`).

Where requests are sparse, or the combinations of a narrow zone are used up, lists of larger subsets find a filling with
fewer steps and from further outside (see `fillings`).

The load is exactly the target, or short of it by half the worker's share of the slack where slack abounds.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.partition.extremes import farthest, locate, take_far
from lbopt.kernels.partition.fillings import RARE, all_fillings, outer_fillings

# places in `state`
NEXT = 0  # place in the order of workers
LEFT = 1  # entries of the pool, dead ones included
DEAD = 2  # entries of the pool that are placed already
SLACK = 3  # room of the workers left less the sum of the pool
WORK = 4  # done in all
TRIED = 5  # done for the present worker
CALLS = 6  # of lists for the present worker
PLACES = 7
ENOUGH = 300_000_000  # work after which a worker is left to the end
SPARSE = 200_000  # steps for a pair from which on lists are cheaper
FEW = 500  # requests of which all pairs of pairs can be listed


@kernel
def peel(
    value: Ints,
    item: Ints,
    taken: Ints,
    state: Ints,
    lack: Ints,
    slots: Ints,
    order: Ints,
    stop: int,
    work_limit: int,
    dice: Ints,
    room: Ints,
    table: Ints,
    picks: Ints,
    merits: Floats,
    assignment: Ints,
) -> bool:
    """Fill the workers order[state[NEXT]:stop]; returns whether all were tried before `work_limit` was reached.

    `value` ascending and `item` (N,) are the pool, of which `state` says how much is left; `taken` (N,) marks what is
    placed. `lack` (G,) and `slots` (G,) are what each worker wants. Placed requests get their worker in `assignment`,
    all else keeps -1. `room`, `table`, `picks` (cap, the largest of `slots`) and `merits` (cap,) are scratch, see
    `fillings`.
    """
    limit = state[WORK] + work_limit
    while state[NEXT] < stop:
        if state[WORK] > limit:
            return False
        g = order[state[NEXT]]
        n = state[LEFT]
        c = slots[g]
        zone = max(2 * c, 16, n // 16)
        while state[TRIED] > 8 * zone**3:  # its combinations are used up
            zone *= 2
        zone = min(n, zone)
        share = state[SLACK] // (order.size - state[NEXT])
        short = share // 2
        steps = 3 * ((value[n - 1] - value[0]) // n) // (short + 1)
        lists = c > 2 and (n <= FEW or (steps > SPARSE and c > 7))
        if lists and state[CALLS] > n:  # enough of them
            lists = False
        if state[DEAD] > (0 if lists else zone // 4):
            n = _compact(value, item, taken, n)
            state[WORK] += state[LEFT]
            state[LEFT], state[DEAD] = n, 0
            zone = min(n, zone)
        before = state[WORK]
        picked = picks[0]
        if lists:
            middle = float(value[n // 2])
            p = farthest(value, n, state[CALLS])
            hits, kind, work = all_fillings(
                value, n, c, lack[g], 2 * share, p, 1, middle, dice, room, table, picks, merits
            )
            if kind == RARE:
                hits, kind, work = outer_fillings(
                    value, n, c, lack[g], 2 * share, 1, middle, dice, room, table, picks, merits
                )
            state[CALLS] += 1
            total = -1
            if hits > 0:
                picked = picks[best_of(merits, hits)]
                total = 0
                for k in range(c):
                    total += value[picked[k]]
            state[WORK] += work
        else:
            total = _fill(value, taken, n, lack[g], c, short, zone, dice, picked, state)
        if total < 0:
            state[TRIED] += state[WORK] - before
            if state[TRIED] > ENOUGH:  # left to the end
                state[TRIED] = state[CALLS] = 0
                state[NEXT] += 1
            continue
        for k in range(c):
            taken[picked[k]] = 1
            assignment[item[picked[k]]] = g
        state[DEAD] += c
        state[SLACK] -= lack[g] - total
        state[TRIED] = state[CALLS] = 0
        state[NEXT] += 1
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
    value: Ints, taken: Ints, n: int, lack: int, c: int, short: int, zone: int, dice: Ints, picked: Ints, state: Ints
) -> int:
    """One try: write c positions to `picked` whose sum is in [lack - short, lack], and return it; or -1."""
    keep = min(2, c)
    rest = take_far(value, n, lack, c, keep, zone, dice, taken, picked)
    middle = locate(value, n, rest // keep)
    begin = min(max(0, middle - zone), max(0, n - 2 * zone))
    end = min(n, max(begin + 2 * zone, 2))
    total = -1
    if keep == 2:
        i, j, steps = _pair(value, taken, begin, end, rest - short, rest)
        state[WORK] += steps + 8 * c
        if i >= 0:
            picked[c - 2], picked[c - 1] = i, j
            total = lack - rest + value[i] + value[j]
    else:
        i = locate(value, n, rest + 1) - 1
        while i >= 0 and taken[i]:
            i -= 1
        state[WORK] += 32
        if i >= 0 and value[i] >= rest - short:
            picked[0] = i
            total = value[i]
        else:
            state[WORK] += ENOUGH // 4  # nothing is drawn here: other tries are no better
    if total < 0:
        for k in range(c - keep):
            taken[picked[k]] = 0
    return total


@kernel
def _pair(value: Ints, taken: Ints, begin: int, end: int, low: int, high: int) -> tuple[int, int, int]:
    """Two free positions of value[begin:end] whose sum lies in [low, high], or -1, -1; and the steps taken."""
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
    """Close the gaps that placed requests left; returns how many are left."""
    kept = 0
    for p in range(n):
        if not taken[p]:
            value[kept] = value[p]
            item[kept] = item[p]
            taken[kept] = 0
            kept += 1
    return kept
