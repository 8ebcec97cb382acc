"""Exact sets: disjoint sets of requests, slots[w] for worker w, with given totals; found, or shown not to exist.

Depth first, workers with fewest slots first. A set is written largest class first, and the least possible largest class
is tried first: sets of like sizes leave the large requests to others. The last class follows from the total.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import Box, Draft, Pool

FOUND, IMPOSSIBLE, GAVE_UP = 1, 0, -1

#: Steps of the search before it gives up: a fraction of a millisecond.
PATIENCE = 3000


@kernel
def next_set(
    pool: Pool, left: Ints, c: int, most: int, total: int, row: Ints, fresh: bool, patience: int
) -> tuple[int, int]:
    """Write the next set of c requests with this total to row[:c] and take it from `left`; the last one is put back.

    Parameters
    ----------
    left
        (K,) int64, requests that are left; changed in place.
    c, most, total
        Requests of the set, the greatest class of any of them, and their total, tokens.
    row
        (Q,) int64, the set; the last one is read unless `fresh`, and the next one is written.

    Returns
    -------
    state, patience
        FOUND, IMPOSSIBLE (there is no further one; nothing is taken) or GAVE_UP; steps that are left.
    """
    v, small = pool.v, pool.small
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
        limit = min(most if q == 0 else row[q - 1], last_fitting(v, rest - small[more]))
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
    return last_fitting(v, -(-total // c) - 1) + 1


@kernel
def assemble(pool: Pool, slots: Ints, order: Ints, box: Box, draft: Draft, patience: int) -> tuple[int, int]:
    """Fill draft.pattern with disjoint sets of the totals draft.goal, requests that must be admitted among them.

    First every forced request that is not among the known ones goes to a worker, those with most slots first; then the
    other slots are filled. In a row of the pattern the set comes first, then forced requests, then the known ones.
    Returns FOUND, IMPOSSIBLE or GAVE_UP, and the worker that was hardest to serve.

    Parameters
    ----------
    order
        (W,) int64, workers with fewest slots first.
    """
    v, left, pattern, owed, owner = pool.v, draft.left, draft.pattern, draft.owed, draft.owner
    room, rest = draft.room, draft.rest
    W, K = slots.size, v.size
    F = 0
    for k in range(K - 1, -1, -1):
        left[k] = box.avail[k]
        if pool.forced > 0:
            for _ in range(pool.must[k] - (pool.n[k] - box.avail[k])):
                owed[F] = k
                owner[F] = -1
                left[k] -= 1
                F += 1
    for w in range(W):
        room[w], rest[w] = slots[w] - box.fixed[w], draft.goal[w] - box.held[w]
    at, deepest = 0, 0
    fresh = True
    while True:
        if at == F + W:
            _write_rest(slots, order, box, draft, F)
            return FOUND, order[W - 1]
        deepest = max(at, deepest)
        state = IMPOSSIBLE
        if at < F:
            k = owed[at]
            size = v[k]
            j = owner[at]
            if j >= 0:
                w = order[W - 1 - j]
                room[w] += 1
                rest[w] += size
            elif at > 0 and owed[at - 1] == k:
                j = owner[at - 1] - 1  # equal requests: in one order only
            j += 1
            while j < W:
                w = order[W - 1 - j]
                more = rest[w] - size
                if room[w] > 0 and k <= box.most[w] and more >= pool.small[room[w] - 1] and (room[w] > 1 or more == 0):
                    break
                j += 1
            patience -= 1
            owner[at] = -1
            if j < W and patience > 0:
                owner[at] = j
                room[w] -= 1
                rest[w] = more
                state = FOUND
            elif patience <= 0:
                state = GAVE_UP
        else:
            w = order[at - F]
            state, patience = next_set(pool, left, room[w], box.most[w], rest[w], pattern[w], fresh, patience)
        if state == FOUND:
            at += 1
            fresh = True
        elif state == GAVE_UP or at == 0:
            return state, order[deepest - F] if deepest >= F else order[W - 1]
        else:
            at -= 1
            fresh = False


@kernel
def _write_rest(slots: Ints, order: Ints, box: Box, draft: Draft, F: int) -> None:
    """Write the forced and the known requests behind the sets.

    Parameters
    ----------
    slots, order
        (W,) int64, slots of the workers, and the order of filling.
    F
        Forced requests that were given to workers.
    """
    W = slots.size
    for w in range(W):
        for q in range(box.fixed[w]):
            draft.pattern[w, slots[w] - box.fixed[w] + q] = box.last[w, q]
    for i in range(F):
        w = order[W - 1 - draft.owner[i]]
        draft.pattern[w, draft.room[w]] = draft.owed[i]
        draft.room[w] += 1
