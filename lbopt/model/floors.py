"""What the largest load of a column is at least, by elementary reasoning in exact integers.

Everything is a sum over the workers or over requests that can be admitted, and stays below 2**62 as `StepProblem` has
checked; longer sums are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    * what counting the largest of these among the workers says, see `counting_floor`.
    """
    admitted = problem.num_admitted
    slots = np.minimum(problem.slots, admitted)
    must = np.ones_like(problem.must_admit) if admitted == problem.num_requests else problem.must_admit
    forced = np.maximum(0, admitted - int(slots.sum()) + slots)
    floors = []
    for h in range(problem.horizon + 1):
        column, work = loads.base[:, h], loads.work[:, h]
        before = int(column.sum())
        total = before + admitted_total(work, problem.must_admit, admitted, largest=False)
        ascending = np.sort(work)
        lightest, heaviest = sums_of_first(ascending, admitted), sums_of_first(ascending[::-1], admitted)
        floor = max(int(column.max()), -(-total // column.size), int((column + lightest[forced]).max()))
        if must.any():
            floor = max(floor, int(work[must].max()) + int(column[slots > 0].min()))
            floor = max(floor, counting_floor(column, slots, np.sort(work[must])[::-1]))
        floors.append(_least_level(column + heaviest[slots], total, floor))
    return floors


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
