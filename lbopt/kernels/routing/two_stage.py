"""Which worker has most room, and the waiting requests ranked by size: what the two stages of BalanceRoute go by."""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def roomiest(load: Ints, free: Ints) -> int:
    """Worker with most free slots; ties: lighter, then lower number."""
    best = 0
    for g in range(1, load.size):
        if free[g] > free[best] or (free[g] == free[best] and load[g] < load[best]):
            best = g
    return best


@kernel
def rank_waiting(sizes: Ints, choice: Ints, ranked: Ints, ranked_size: Ints) -> int:
    """Rank the positions without a worker by size, largest first, ties in order of revelation; returns how many.

    Parameters
    ----------
    sizes, choice
        int64 (n,), tokens, and the worker of each position or -1.
    ranked, ranked_size
        int64 (>= n,), written: position and tokens of each rank.
    """
    rest = 0
    for position in range(sizes.size):
        if choice[position] < 0:
            ranked[rest] = position
            rest += 1
    size = np.empty(rest, np.int64)
    for r in range(rest):
        size[r] = -sizes[ranked[r]]
    order = np.argsort(size, kind="mergesort")
    waiting = ranked[:rest].copy()
    for r in range(rest):
        ranked[r] = waiting[order[r]]
        ranked_size[r] = -size[order[r]]
    return rest


@kernel
def first_at_most(ranked_size: Ints, rest: int, bound: int) -> int:
    """First rank whose size is at most `bound`, in the descending array ranked_size[:rest]."""
    low, high = 0, rest
    while low < high:
        middle = (low + high) // 2
        if ranked_size[middle] <= bound:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def fill_window(by_arrival: int, ranked: Ints, rest: int, length: int, window_rank: Ints) -> None:
    """Write the ranks of the first `length` waiting requests in window order.

    Parameters
    ----------
    by_arrival
        0: largest first, 1: in order of revelation.
    ranked
        int64 (>= rest,), position in the pool of each rank.
    rest, length
        How many ranks wait, and how many of them the window takes.
    window_rank
        int64 (>= length,), written.
    """
    if not by_arrival:
        for j in range(length):
            window_rank[j] = j
        return
    count = 0
    for r in range(rest):  # keep the `length` smallest pool positions, ascending
        j = min(count, length - 1)
        if count == length and ranked[window_rank[j]] < ranked[r]:
            continue
        while j > 0 and ranked[window_rank[j - 1]] > ranked[r]:
            window_rank[j] = window_rank[j - 1]
            j -= 1
        window_rank[j] = r
        count = min(count + 1, length)


@kernel
def remove_rank(ranked: Ints, ranked_size: Ints, rest: int, r: int) -> int:
    """Remove rank `r`; returns how many remain.

    Parameters
    ----------
    ranked, ranked_size
        int64 (>= rest,), position in the pool and tokens of each rank, the largest first; changed in place.
    rest, r
        How many ranks there are, and the one to remove.
    """
    for q in range(r, rest - 1):
        ranked[q] = ranked[q + 1]
        ranked_size[q] = ranked_size[q + 1]
    return rest - 1


@kernel
def remove_placed(ranked: Ints, ranked_size: Ints, rest: int, choice: Ints) -> int:
    """Remove the ranks that have a worker by now; returns how many remain.

    Parameters
    ----------
    ranked, ranked_size
        int64 (>= rest,), position in the pool and tokens of each rank, the largest first; changed in place.
    rest
        How many ranks there are.
    choice
        int64 (n,), the worker of each position, or -1.
    """
    kept = 0
    for r in range(rest):
        if choice[ranked[r]] < 0:
            ranked[kept] = ranked[r]
            ranked_size[kept] = ranked_size[r]
            kept += 1
    return kept
