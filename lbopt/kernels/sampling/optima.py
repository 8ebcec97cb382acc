"""All optima of one small step (H = 0), by exhaustion: every placement is looked at unless it provably costs more.

Requests of one size are interchangeable, so a placement is how many of each size every worker gets: workers are filled
one after the other, each with every combination of sizes that has as many requests as it has free slots and whose
copies are left. With P the largest load so far and every later worker at its most, a branch costs at least
sum (P - L_g) over the filled workers plus sum (P - most_g)^+ over the others, for G max - sum never falls when the
maximum rises; it is left only where that is strictly more than the best, so no optimum is lost.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def all_optima(
    before: Ints, free: Ints, sizes: Ints, copies: Ints, pattern: Ints, first: Ints, limit: int, found: Ints
) -> tuple[int, int]:
    """Return the least imbalance (tokens), at most `limit`, and how many placements have it; limit + 1 and 0 if none.

    Parameters
    ----------
    before, free
        int64 (G,): loads before admission (tokens), free slots (0 allowed); every slot is filled.
    sizes, copies
        int64 (m,): tokens, strictly increasing, and how many requests there are of each; at least as many as slots.
    pattern, first
        int64 (P, m) and (c_max + 2,): the combinations of c requests are rows first[c] .. first[c + 1] - 1.
    limit
        No placement that costs more is looked for.
    found
        int64 (n, G, m): the first n optima are written; n = 0 only counts.
    """
    G, m = free.size, sizes.size
    most = np.empty(G, np.int64)
    for g in range(G):
        most[g] = before[g] + sizes[m - 1] * free[g]
    left = copies.copy()
    at = np.full(G, -1, np.int64)  # the pattern of a filled worker
    load = np.zeros(G, np.int64)
    best, count = limit + 1, 0
    g = 0
    while g >= 0:
        if at[g] >= 0:
            for j in range(m):
                left[j] += pattern[at[g], j]
            at[g] += 1
        else:
            at[g] = first[free[g]]
        while at[g] < first[free[g] + 1] and not are_left(pattern[at[g]], left):
            at[g] += 1
        if at[g] == first[free[g] + 1]:
            at[g] = -1
            g -= 1
            continue
        load[g] = before[g]
        for j in range(m):
            left[j] -= pattern[at[g], j]
            load[g] += pattern[at[g], j] * sizes[j]
        cost = costs_at_least(load, most, g)
        if cost > best:
            continue
        if g < G - 1:
            g += 1
            continue
        if cost < best:
            best, count = cost, 0
        if count < found.shape[0]:
            for w in range(G):
                found[count, w] = pattern[at[w]]
        count += 1
    return best, count


@kernel
def are_left(wanted: Ints, left: Ints) -> bool:
    """Return whether `left` has as many requests of each size as `wanted`, both int64 (m,)."""
    missing = 0
    for j in range(left.size):
        missing += max(0, wanted[j] - left[j])
    return missing == 0


@kernel
def costs_at_least(load: Ints, most: Ints, last: int) -> int:
    """Bound the imbalance once workers 0 .. `last` are filled; exact for the last worker."""
    peak = load[0]
    for g in range(1, last + 1):
        peak = max(peak, load[g])
    cost = 0
    for g in range(last + 1):
        cost += peak - load[g]
    for g in range(last + 1, most.size):
        cost += max(0, peak - most[g])
    return cost
