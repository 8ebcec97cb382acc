"""Assignments near given sums. Pairs of requests next to a total are found by two pointers.

An assignment beneath given envelopes: no worker above its margin, as many tokens as possible.

At fixed envelopes the cost falls by T for every token admitted. Workers with fewest slots come first, then those with
the tightest margin; then rounds follow in which one slot of every worker is opened and all are refilled at once: an
open slot holds what was in it plus what is free up to the margin, such limits are nested, so in ascending order of the
limits each slot takes the largest request left that fits, which never loses tokens.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.draw import following
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import Draft, Pool, Profile, Scratch

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


@kernel
def margins(profile: Profile, envelope: Floats, margin: Ints) -> None:
    """Set margin[w] to the largest total of worker w that raises no envelope[h], whole tokens."""
    W, T = profile.peak.shape
    for w in range(W):
        least = np.inf
        for h in range(T):
            least = min(least, envelope[h] - profile.peak[w, h])
        margin[w] = int(least + 1e-4) if least > 0 else 0


@kernel
def fill_beneath(pool: Pool, slots: Ints, order: Ints, draft: Draft, rounds: int, scratch: Scratch) -> bool:
    """Fill draft.pattern beneath the margins in draft.goal; False where a forced request is left over.

    Parameters
    ----------
    order
        (W,) int64, workers with fewest slots first.
    """
    v, left, pattern, placed, goal = pool.v, draft.left, draft.pattern, draft.placed, draft.goal
    W, K = slots.size, v.size
    opened, link, head, turn = scratch.opened, scratch.link, scratch.head, scratch.turn
    for i in range(W):  # fewest slots first, then the tightest margin
        w = order[i]
        at = i
        while at > 0 and slots[turn[at - 1]] == slots[w] and goal[turn[at - 1]] > goal[w]:
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = w
    if not fill_near(pool, slots, turn, draft, True, scratch):
        return False
    state = 12345
    for _ in range(rounds):
        for k in range(K):
            head[k] = -1
        for w in range(W):
            state = following(state)
            q = state % slots[w]
            k = pattern[w, q]
            limit = last_fitting(v, goal[w] - placed[w] + v[k])
            if limit < k or left[k] + 1 > pool.n[k] - pool.must[k]:
                continue  # above its margin, or a request that has to stay
            left[k] += 1
            placed[w] -= v[k]
            opened[w] = q
            link[w] = head[limit]
            head[limit] = w
        for limit in range(K):
            w = head[limit]
            k = limit
            while w >= 0:
                while left[k] == 0:  # ends: every slot could have its own request back
                    k -= 1
                pattern[w, opened[w]] = k
                left[k] -= 1
                placed[w] += v[k]
                w = link[w]
    return True
