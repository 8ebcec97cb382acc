"""Exact sets: disjoint sets of requests, slots[w] for worker w, with given totals; found, or shown not to exist.

Depth first, workers with fewest slots first. A set is written largest class first, and the least possible largest class
is tried first: sets of like sizes leave the large requests to others. The last class follows from the total.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.sums import class_at_most
from lbopt.kernels.windows.terms import Box, Draft, Pool

FOUND, IMPOSSIBLE, GAVE_UP = 1, 0, -1


@kernel
def next_set(
    v: Ints, small: Ints, left: Ints, c: int, most: int, total: int, row: Ints, fresh: bool, patience: int
) -> tuple[int, int]:
    """Write the next set of c requests with this total to row[:c] and take it from `left`; the last one is put back.

    Classes are at most `most`; small[c] is no more than the total of any c requests.

    Returns
    -------
    state, patience
        FOUND, IMPOSSIBLE (there is no further one; nothing is taken) or GAVE_UP; steps that are left.
    """
    rest = total
    q, j = 0, 0
    if fresh:
        if c == 0:
            return FOUND if total == 0 else IMPOSSIBLE, patience
        j = _share(v, rest, c)
    else:
        for i in range(c):
            left[row[i]] += 1
        for i in range(c - 2):
            left[row[i]] -= 1
            rest -= v[row[i]]
        # the last class follows from the others: go on with the one before
        q = c - 2
        if q < 0:
            return IMPOSSIBLE, patience
        j = row[q] + 1
    while True:
        patience -= 1
        more = c - 1 - q
        limit = min(most if q == 0 else row[q - 1], class_at_most(v, rest - small[more]))
        found = False
        if more == 0:
            if limit >= 0 and v[limit] == rest and left[limit] > 0:
                row[q] = limit
                left[limit] -= 1
                return FOUND, patience
        else:
            while j <= limit and left[j] == 0:
                j += 1
            found = j <= limit
        if found and patience > 0:
            row[q] = j
            left[j] -= 1
            rest -= v[j]
            q += 1
            j = _share(v, rest, c - q)
        else:
            q -= 1
            if q < 0:
                return IMPOSSIBLE, patience
            left[row[q]] += 1
            rest += v[row[q]]
            j = row[q] + 1
            if patience <= 0:
                for i in range(q):
                    left[row[i]] += 1
                return GAVE_UP, patience


@kernel
def _share(v: Ints, total: int, c: int) -> int:
    """Return the least class that can be the largest of c requests with this total."""
    return class_at_most(v, -(-total // c) - 1) + 1


@kernel
def assemble(
    pool: Pool, slots: Ints, order: Ints, forced: int, box: Box, draft: Draft, patience: int
) -> tuple[int, int]:
    """Fill draft.pattern with disjoint sets of the totals draft.goal, requests that must be admitted among them.

    The known requests of a worker come last in its row. Returns FOUND, IMPOSSIBLE or GAVE_UP, and the worker that was
    hardest to serve.
    """
    v, left, pattern = pool.v, draft.left, draft.pattern
    W = slots.size
    for k in range(v.size):
        left[k] = box.avail[k]
    at, deepest = 0, 0
    fresh = True
    while True:
        if at == W:
            good = True
            if forced > 0:
                for k in range(v.size):
                    if left[k] > pool.n[k] - pool.must[k]:
                        good = False
            if good:
                for w in range(W):
                    for q in range(box.fixed[w]):
                        pattern[w, slots[w] - box.fixed[w] + q] = box.last[w, q]
                return FOUND, order[deepest]
            at -= 1
            fresh = False
        w = order[at]
        deepest = max(at, deepest)
        total = draft.goal[w] - box.held[w]
        state, patience = next_set(
            v, pool.small, left, slots[w] - box.fixed[w], box.most[w], total, pattern[w], fresh, patience
        )
        if state == FOUND:
            at += 1
            fresh = True
        elif state == GAVE_UP:
            return GAVE_UP, order[deepest]
        else:
            at -= 1
            fresh = False
            if at < 0:
                return IMPOSSIBLE, order[deepest]
