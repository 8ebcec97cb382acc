"""Exact sets: disjoint sets of requests, slots[w] for worker w, with given totals; found, or shown not to exist.

Depth first, workers with fewest slots first; the sets of a worker are tried in descending order of their classes, so
that each can be continued from where it stands. The last class of a set follows from its total.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.sums import class_at_most
from lbopt.kernels.windows.terms import FIXED_AT, FORCED, Search, Window

FOUND, IMPOSSIBLE, GAVE_UP = 1, 0, -1


@kernel
def next_set(
    v: Ints, left: Ints, c: int, most: int, total: int, row: Ints, fresh: bool, patience: int
) -> tuple[int, int]:
    """Write the next set of c requests with this total to row[:c] and take it from `left`; the last one is put back.

    Classes are at most `most`.

    Returns
    -------
    state, patience
        FOUND, IMPOSSIBLE (there is no further one; nothing is taken) or GAVE_UP; steps that are left.
    """
    rest = total
    if fresh:
        q = 0
        k = most
        if c == 0:
            return FOUND if total == 0 else IMPOSSIBLE, patience
    else:
        for i in range(c):
            left[row[i]] += 1
        for i in range(c - 1):
            left[row[i]] -= 1
            rest -= v[row[i]]
        # the last class follows from the others: go on with the one before
        q = c - 2
        if q < 0:
            return IMPOSSIBLE, patience
        left[row[q]] += 1
        rest += v[row[q]]
        k = row[q] - 1
    while True:
        patience -= 1
        more = c - 1 - q
        found = False
        if more == 0:
            j = class_at_most(v, rest)
            if j >= 0 and v[j] == rest and j <= k and left[j] > 0:
                row[q] = j
                left[j] -= 1
                return FOUND, patience
        else:
            j = min(k, class_at_most(v, rest - more * v[0]))
            while j >= 0 and (more + 1) * v[j] >= rest:
                if left[j] > 0:
                    found = True
                    break
                j -= 1
        if found and patience > 0:
            row[q] = j
            left[j] -= 1
            rest -= v[j]
            q += 1
            k = j
        else:
            q -= 1
            if q < 0:
                return IMPOSSIBLE, patience
            left[row[q]] += 1
            rest += v[row[q]]
            k = row[q] - 1
            if patience <= 0:
                for i in range(q):
                    left[row[i]] += 1
                return GAVE_UP, patience


@kernel
def assemble(window: Window, search: Search, sums: Ints, patience: int) -> int:
    """Fill search.pattern with disjoint sets of the given totals, requests that must be admitted among them.

    The known requests of a worker come last in its row. Returns FOUND, IMPOSSIBLE or GAVE_UP; known[FIXED_AT] is then
    the worker that was hardest to serve.
    """
    v, slots, order, left, pattern = window.v, window.slots, window.order, search.left, search.pattern
    W = slots.size
    for k in range(v.size):
        left[k] = search.avail[k]
    at, deepest = 0, 0
    fresh = True
    search.known[FIXED_AT] = order[0]
    while True:
        if at == W:
            good = True
            if window.facts[FORCED] > 0:
                for k in range(v.size):
                    if left[k] > window.n[k] - window.must[k]:
                        good = False
            if good:
                for w in range(W):
                    for q in range(search.fixed[w]):
                        pattern[w, slots[w] - search.fixed[w] + q] = search.item_most[w, q]
                return FOUND
            at -= 1
            fresh = False
        w = order[at]
        if at > deepest:
            deepest = at
            search.known[FIXED_AT] = w
        free = slots[w] - search.fixed[w]
        total, most = sums[w] - search.held[w], search.most_next[w]
        state, patience = next_set(v, left, free, most, total, pattern[w], fresh, patience)
        if state == FOUND:
            at += 1
            fresh = True
        elif state == GAVE_UP:
            return GAVE_UP
        else:
            at -= 1
            fresh = False
            if at < 0:
                return IMPOSSIBLE
