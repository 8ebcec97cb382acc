"""What the largest load of a column is at least, by elementary reasoning in exact integers.

Everything is a sum over the workers or over requests that can be admitted, and stays below 2**62 as `StepProblem` has
checked; longer sums are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from lbopt.model.integers import BoolArray, IntArray
from lbopt.model.reduced_loads import ReducedArrays
from lbopt.model.step_problem import StepProblem

#: The base load of a worker that does not exist: above every sum, and a sum away from overflow.
_NOBODY = 1 << 62


def envelope_floors(problem: StepProblem, loads: ReducedArrays) -> list[int]:
    """Return, for each h, a lower bound on M_h in reduced units.

    A maximum M is at least

    * every base load, and the mean load with the lightest admissible set rounded up;
    * the least M with sum_g min(M, base[g,h] + the slots_g largest works) >= that load: a worker with few slots cannot
      get its share, so others carry more than the mean;
    * base[g,h] plus the smallest works that g must take because the slots elsewhere do not suffice, for each g;
    * the lightest worker with a free slot plus the largest work that has to be admitted;
    * what counting the largest of these among the workers says, see `counting_floor`;
    * and where all are admitted, what the same sentences say of the slots that a level leaves a use for, see `raised`.
    """
    admitted = problem.num_admitted
    slots = np.minimum(problem.slots, admitted)
    all_go = admitted == problem.num_requests
    must = np.ones_like(problem.must_admit) if all_go else problem.must_admit
    floors = []
    for h in range(problem.horizon + 1):
        column, work = loads.base[:, h], loads.work[:, h]
        total = int(column.sum()) + admitted_total(work, problem.must_admit, admitted, largest=False)
        ascending, bound_to_come = np.sort(work), np.sort(work[must])[::-1]
        floor_with = partial(_floor, column, total, admitted, ascending, bound_to_come)
        floor = floor_with(slots)
        floors.append(raised(floor, column, slots, ascending, floor_with) if all_go else floor)
    return floors


def _floor(
    column: IntArray, total: int, admitted: int, ascending: IntArray, bound_to_come: IntArray, slots: IntArray
) -> int:
    forced = np.maximum(0, admitted - int(slots.sum()) + slots)
    lightest, heaviest = sums_of_first(ascending, admitted), sums_of_first(ascending[::-1], admitted)
    floor = max(int(column.max()), -(-total // column.size), int((column + lightest[forced]).max()))
    if bound_to_come.size:
        floor = max(floor, int(bound_to_come[0]) + int(column[slots > 0].min()))
        floor = max(floor, counting_floor(column, slots, bound_to_come))
    return _least_level(column + heaviest[slots], total, floor)


def raised(
    floor: int, base: IntArray, slots: IntArray, ascending: IntArray, floor_with: Callable[[IntArray], int]
) -> int:
    """Return the floor raised by what it says of fewer slots: of those that a level leaves a use for.

    A level that all loads keep lets no worker hold more requests than the smallest of all allow. If these slots are too
    few, or the floor with them is above the level, the level is refuted, and all below it. Steps double from the floor
    until one is not refuted, then what is between is halved.

    Parameters
    ----------
    floor
        What the largest load is at least, tokens; no base load is above it.
    base, slots
        int64 (G,): loads before, and free slots.
    ascending
        int64 (N,): sizes of the requests, all of which are admitted, smallest first.
    floor_with
        The floor for other slots.
    """

    def refuted(level: int) -> bool:
        used = slots_in_use(base, slots, ascending, level)
        return int(used.sum()) < ascending.size or floor_with(used) > level

    below, step = floor - 1, 1
    while refuted(below + step):
        below, step = below + step, 2 * step
    open_at = below + step
    while open_at - below > 1:
        middle = (below + open_at) // 2
        below, open_at = (middle, open_at) if refuted(middle) else (below, middle)
    return open_at


def slots_in_use(base: IntArray, slots: IntArray, ascending: IntArray, level: int) -> IntArray:
    """Return the slots that a worker can use with no load above a level, all requests being as small as the smallest.

    Parameters
    ----------
    base, slots
        int64 (G,): loads before, and free slots.
    ascending
        int64 (N,): sizes of the requests, smallest first.
    level
        Tokens, no base load above it.
    """
    most = np.searchsorted(sums_of_first(ascending, ascending.size), level - base, side="right") - 1
    return np.minimum(slots, most)


def counting_floor(base: IntArray, slots: IntArray, descending: IntArray) -> int:
    """Return what the largest load is at least, because the largest requests are so many for so few workers.

    Take the n largest, and the least c with sum_g min(slots_g, c) >= n. Either some worker holds c + 1 of them or more,
    and so at least the c + 1 smallest of these n; or k = n - sum_g min(slots_g, c - 1) workers or more hold c, and so
    together at least the k c smallest of these n, of which one of them bears the mean. The floor is the less of the
    two, with the least base loads that there are for it, and the best over all n.

    Parameters
    ----------
    base, slots
        int64 (G,): loads before, and free slots, none more than there are requests to admit.
    descending
        int64 (n,): sizes of requests that are all admitted, largest first.
    """
    count, best = descending.size, 0
    top = sums_of_first(descending, count)
    places = np.unique(slots[slots > 0])
    low, filled = 0, 0  # workers hold up to `low` each, `filled` together
    for high in places.tolist():
        wide = np.sort(base[slots >= high])
        wider = base[slots > high]
        lightest = sums_of_first(wide, wide.size)
        n = np.arange(filled + 1, min(count, filled + (high - low) * wide.size) + 1)
        c = low - (filled - n) // wide.size
        k = n - filled - (c - 1 - low) * wide.size
        shared = -(-(top[n] - top[n - k * c] + lightest[k]) // k)
        roomy = np.where(c < high, wide[0], wider.min(initial=_NOBODY))
        crowded = np.where(n > c, top[n] - top[np.maximum(0, n - c - 1)] + roomy, _NOBODY)
        best = max(best, int(np.minimum(shared, crowded).max(initial=0)))
        low, filled = high, filled + (high - low) * wide.size
    return best


def _least_level(most: IntArray, total: int, low: int) -> int:
    """Return the least level >= `low` at which loads of at most `most` hold `total`; there is one."""
    high = max(low, int(most.max()))
    while low < high:
        middle = (low + high) // 2
        if int(np.minimum(most, middle).sum()) >= total:
            high = middle
        else:
            low = middle + 1
    return low


def admitted_total(weights: IntArray, must_admit: BoolArray, count: int, *, largest: bool) -> int:
    """Return the largest (or least) total weight of `count` requests that include all of `must_admit`.

    Parameters
    ----------
    weights
        int64 (N,), weight of each request.
    must_admit
        bool (N,), whether a request must be among them.
    count
        Requests to admit.
    largest
        Whether the largest total is asked for; else the least.
    """
    forced, free = weights[must_admit], np.sort(weights[~must_admit])
    chosen = (free[::-1] if largest else free)[: count - forced.size]
    return int(forced.sum()) + int(chosen.sum())


def sums_of_first(values: IntArray, most: int) -> IntArray:
    """Return the sums of the first 0, 1, ..., `most` values, int64; of all where there are fewer."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values[:most])])


def prefix_sums(values: Sequence[int]) -> list[int]:
    """Return the sums of the first 0, 1, ... values."""
    return list(accumulate(values, initial=0))
