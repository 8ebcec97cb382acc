"""Assignments near given sums, and what they cost. Pairs of requests next to a total are found by two pointers."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.terms import CONSTANT, COST, WORKERS, Draft, Pool, Profile

_FAR = 1 << 60


@kernel
def cost_of(profile: Profile, facts: Ints, sums: Ints) -> int:
    """Return the cost of sums S_w, tokens."""
    peak = profile.peak
    W, T = peak.shape
    G = facts[WORKERS]
    cost = facts[CONSTANT]
    for h in range(T):
        top = profile.floor[h]
        for w in range(W):
            top = max(top, peak[w, h] + sums[w])
        cost += G * top
    for w in range(W):
        cost -= T * sums[w]
    return cost


@kernel
def nearest(v: Ints, left: Ints, c: int, total: int, out: Ints) -> None:
    """Write the sets of c = 1 or 2 requests left with total next to `total`: below or at, then above; -1 for none.

    out[0:c] and out[2:2+c] are classes.
    """
    out[0], out[2] = -1, -1
    K = v.size
    if c == 1:
        k = last_fitting(v, total)
        j = k
        while j >= 0 and left[j] == 0:
            j -= 1
        out[0] = j
        j = k + 1
        while j < K and left[j] == 0:
            j += 1
        out[2] = j if j < K else -1
        return
    below, above = -_FAR, _FAR
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
            if t > below:
                below = t
                out[0], out[1] = i, j
            i += 1
            while i < K and left[i] == 0:
                i += 1
        else:
            if t < above:
                above = t
                out[2], out[3] = i, j
            j -= 1
            while j >= 0 and left[j] == 0:
                j -= 1


@kernel
def fill_near(pool: Pool, slots: Ints, order: Ints, draft: Draft, beneath: bool, scratch: Ints) -> bool:
    """Fill draft.pattern with sets near the totals draft.goal; False where a forced request is left over.

    Forced requests come first, largest first to the worker with most to receive a slot; then workers with fewest slots
    first, all slots but two filled with what is nearest to the mean, the last two together. With `beneath` what is
    below is taken where there is something.
    """
    v, left, pattern, placed, sums = pool.v, draft.left, draft.pattern, draft.placed, draft.goal
    W, K = slots.size, v.size
    filled, out = scratch[0], scratch[1]
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
            nearest(v, left, c, goal, out)
            side = 0
            if out[0] < 0 or (
                not beneath and out[2] >= 0 and total_of(v, out, 2, c) - goal < goal - total_of(v, out, 0, c)
            ):
                side = 2
            if out[side] < 0:
                return False
            for j in range(c):
                pattern[w, filled[w]] = out[side + j]
                left[out[side + j]] -= 1
                placed[w] += v[out[side + j]]
                filled[w] += 1
    return True


@kernel
def total_of(v: Ints, out: Ints, side: int, c: int) -> int:
    """Return the total of the set of c = 1 or 2 classes at out[side]."""
    total = v[out[side]]
    if c == 2:
        total += v[out[side + 1]]
    return total


@kernel
def offer(known: Ints, answer: Ints, pattern: Ints, cost: int) -> None:
    """Keep the pattern where it costs less than the best known."""
    if cost < known[COST]:
        known[COST] = cost
        for w in range(pattern.shape[0]):
            for q in range(pattern.shape[1]):
                answer[w, q] = pattern[w, q]
