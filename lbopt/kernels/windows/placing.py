"""Assignments near given sums. Pairs of requests next to a total are found by two pointers."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import Draft, Pool, Scratch

_INFINITY = 1 << 60


@kernel
def nearest(v: Ints, left: Ints, c: int, total: int, below: Ints, above: Ints) -> None:
    """Write the sets of c = 1 or 2 requests left with total next to `total`: below or at it, and above it.

    Parameters
    ----------
    v, left
        (K,) int64, sizes, ascending, tokens, and how many requests of each are left.
    c, total
        The number of requests, and tokens.
    below, above
        (2,) int64; the first c entries are set to classes, the first one to -1 where there is no such set.
    """
    below[0], above[0] = -1, -1
    K = v.size
    if c == 1:
        k = last_fitting(v, total)
        j = k
        while j >= 0 and left[j] == 0:
            j -= 1
        below[0] = j
        j = k + 1
        while j < K and left[j] == 0:
            j += 1
        above[0] = j if j < K else -1
        return
    most_below, least_above = -_INFINITY, _INFINITY
    i, j = 0, K - 1
    while i < K and left[i] == 0:
        i += 1
    while j >= 0 and left[j] == 0:
        j -= 1
    while i <= j:
        if i == j and left[i] < 2:
            break
        t = v[i] + v[j]
        if t <= total:
            if t > most_below:
                most_below = t
                below[0], below[1] = i, j
            i += 1
            while i < K and left[i] == 0:
                i += 1
        else:
            if t < least_above:
                least_above = t
                above[0], above[1] = i, j
            j -= 1
            while j >= 0 and left[j] == 0:
                j -= 1


@kernel
def fill_near(pool: Pool, slots: Ints, order: Ints, draft: Draft, beneath: bool, scratch: Scratch) -> bool:
    """Fill draft.pattern with sets near the totals draft.goal; False where a forced request is left over.

    Forced requests come first, largest first to the worker with most to receive a slot; then workers with fewest slots
    first, all slots but two filled with what is nearest to the mean, the last two together. With `beneath` what is
    below is taken where there is something.

    Parameters
    ----------
    order
        (W,) int64, workers in the order of filling.
    beneath
        Whether totals below the goals are preferred.
    """
    v, left, pattern, placed, sums = pool.v, draft.left, draft.pattern, draft.placed, draft.goal
    W, K = slots.size, v.size
    filled, below, above = scratch.filled, scratch.below, scratch.above
    for k in range(K):
        left[k] = pool.n[k]
    for w in range(W):
        filled[w], placed[w] = 0, 0
    for k in range(K - 1, -1, -1):
        for _ in range(pool.must[k]):
            best = -1
            for w in range(W):
                if filled[w] < slots[w] and (
                    best < 0
                    or (sums[w] - placed[w]) * (slots[best] - filled[best])
                    > (sums[best] - placed[best]) * (slots[w] - filled[w])
                ):
                    best = w
            if best < 0:
                return False
            pattern[best, filled[best]] = k
            filled[best] += 1
            placed[best] += v[k]
            left[k] -= 1
    for i in range(W):
        w = order[i]
        while filled[w] < slots[w]:
            missing = slots[w] - filled[w]
            rest = sums[w] - placed[w]
            c = 2 if missing == 2 else 1
            goal = rest if missing <= 2 else rest // missing
            nearest(v, left, c, goal, below, above)
            chosen = below
            if below[0] < 0 or (
                not beneath and above[0] >= 0 and total_of(v, above, c) - goal < goal - total_of(v, below, c)
            ):
                chosen = above
            if chosen[0] < 0:
                return False
            for j in range(c):
                pattern[w, filled[w]] = chosen[j]
                left[chosen[j]] -= 1
                placed[w] += v[chosen[j]]
                filled[w] += 1
    return True


@kernel
def total_of(v: Ints, chosen: Ints, c: int) -> int:
    """Return the total of a set of c = 1 or 2 classes."""
    total = v[chosen[0]]
    if c == 2:
        total += v[chosen[1]]
    return total
