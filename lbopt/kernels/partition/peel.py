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

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.partition.extremes import farthest, locate, take_far
from lbopt.kernels.partition.fillings import RARE, all_fillings, outer_fillings
from lbopt.kernels.partition.state import Lists, Taking

#: How far the workers are filled, one record: place in the order of workers; entries of the pool, dead ones included;
#: entries that are placed already; room of the workers left less the sum of the pool, in units of the sizes; work done
#: in all, and for the present worker; calls of lists for the present worker.
PEELING = integers("next", "left", "dead", "slack", "work", "tried", "calls")
ENOUGH = 300_000_000  # work after which a worker is left to the end
SPARSE = 200_000  # steps for a pair from which on lists are cheaper
FEW = 500  # requests of which all pairs of pairs can be listed


@by_reference
class Pool(NamedTuple):
    """Requests that are unplaced at first, what becomes of them, and the workers to be filled."""

    value: Ints  # (N,) sizes, ascending
    item: Ints  # (N,) requests
    taken: Ints  # (N,) marks what is placed
    state: Record  # PEELING
    lack: Ints  # (G,) what each worker wants
    slots: Ints  # (G,) of how many requests
    order: Ints  # (W,) the workers in the order in which they are filled
    assignment: Ints  # worker of each request, -1 as long as it has none


@kernel
def peel(pool: Pool, lists: Lists, stop: int, work_limit: int) -> bool:
    """Fill the workers order[state.next:stop]; return whether all were tried before `work_limit` or the deadline."""
    state, value, lack, picks = pool.state, pool.value, pool.lack, lists.picks
    limit = state.work + work_limit
    while state.next < stop:
        if state.work > limit or out_of_time(lists.clock):
            return False
        g = pool.order[state.next]
        n, c = state.left, pool.slots[g]
        zone = max(2 * c, 16, n // 16)
        while state.tried > 8 * zone**3:  # its combinations are used up
            zone *= 2
        zone = min(n, zone)
        share = state.slack // (pool.order.size - state.next)
        short = share // 2
        steps = 3 * ((value[n - 1] - value[0]) // n) // (short + 1)
        by_lists = c > 2 and (n <= FEW or (steps > SPARSE and c > 7)) and state.calls <= n  # else enough of them
        if state.dead > (0 if by_lists else zone // 4):
            n = _compact(value, pool.item, pool.taken, n)
            state.work += state.left
            state.left, state.dead = n, 0
            zone = min(n, zone)
        before = state.work
        picked = picks[0]
        if by_lists:
            picked = _best_listed(pool, lists, value[:n], g, 2 * share)
        else:
            t = Taking(value[:n], pool.taken[:n], picked, lists.dice)
            if not _fill(t, state, lack[g], c, short, zone):
                picked = picked[:0]
        if picked.size == 0:
            state.tried += state.work - before
            if state.tried > ENOUGH:  # left to the end
                state.tried = state.calls = 0
                state.next += 1
            continue
        total = 0
        for k in range(c):
            total += value[picked[k]]
            pool.taken[picked[k]] = 1
            pool.assignment[pool.item[picked[k]]] = g
        state.dead += c
        state.slack -= lack[g] - total
        state.tried = state.calls = 0
        state.next += 1
    return True


@kernel
def _best_listed(pool: Pool, lists: Lists, value: Ints, g: int, slack: int) -> Ints:
    """Return the filling of worker g of most merit that lists of subsets find; an empty row for none."""
    state, c, lack, middle = pool.state, pool.slots[g], pool.lack[g], float(value[value.size // 2])
    p = farthest(value, state.calls)
    hits, kind, work = all_fillings(lists, value, c, lack, slack, p, 1, middle)
    if kind == RARE:
        hits, kind, work = outer_fillings(lists, value, c, lack, slack, 1, middle)
    state.calls += 1
    state.work += work
    if hits == 0:
        return value[:0]
    return lists.picks[np.argmax(lists.merits[:hits])]


@kernel
def _fill(t: Taking, state: Record, lack: int, c: int, short: int, zone: int) -> bool:
    """Try once to pick c positions whose sum is in [lack - short, lack]; return whether that went well."""
    value, n, keep, picked = t.value, t.value.size, min(2, c), t.picked
    rest = take_far(t, lack, c, keep, zone)
    middle = locate(value, rest // keep)
    begin = min(max(0, middle - zone), max(0, n - 2 * zone))
    end = min(n, max(begin + 2 * zone, 2))
    if keep == 2:
        i, j, steps = _pair(value, t.taken, begin, end, rest - short, rest)
        state.work += steps + 8 * c
        if i >= 0:
            t.picked[c - 2], t.picked[c - 1] = i, j
            return True
    else:
        i = locate(value, rest + 1) - 1
        while i >= 0 and t.taken[i]:
            i -= 1
        state.work += 32
        if i >= 0 and value[i] >= rest - short:
            picked[0] = i
            return True
        state.work += ENOUGH // 4  # nothing is drawn here: other tries are no better
    for k in range(c - keep):
        t.taken[t.picked[k]] = 0
    return False


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
