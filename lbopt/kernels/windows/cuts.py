"""Cuts: what several workers can hold together, because they draw from one pool.

Slot by slot: a slot of worker w holds at most the largest class that the node leaves it. Such limits are nested, so the
most that a set of slots can hold follows greedily: from the largest class down, each request goes to a slot that may
hold it and is still empty, whichever. Requests of known workers are gone for everybody else. The same from below.
Limits are computed anew for every node, so that a cut is as tight as its box.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.sums import class_at_most
from lbopt.kernels.windows.terms import CUT_COUNT, CUTS, FORCED, Search, Window


@kernel
def limit_of(window: Window, search: Search, c: int) -> int:
    """Return the limit of cut c at the node at hand; -1 where its workers cannot be filled."""
    v, slots, avail = window.v, window.slots, search.avail
    W, K = slots.size, v.size
    wanted = search.scratch[4]
    places = 0
    top = search.sense[c] > 0
    total = 0
    for k in range(K):
        wanted[k] = 0
    for w in range(W):
        if search.inside[c, w] == 0:
            continue
        total += search.held[w]
        q = slots[w] - search.fixed[w]
        if q == 0:
            continue
        places += q
        if top:
            wanted[search.most_next[w]] += q
        else:
            wanted[search.least_next[w]] += 1
            if q > 1:
                share = search.low[w] - search.held[w] - (q - 1) * v[search.most_next[w]]
                wanted[class_at_most(v, share - 1) + 1] += q - 1
    forced = 0
    if window.facts[FORCED] > 0:
        forced = _with_forced(window, search, c)
        if forced < 0:
            return -1
    waiting = 0
    for turn in range(K):
        k = K - 1 - turn if top else turn
        if wanted[k] > 0:
            waiting += wanted[k]
        if waiting > 0 and avail[k] > 0:
            served = min(waiting, avail[k])
            total += served * v[k]
            waiting -= served
            places -= served
            if places == 0:
                break
    if places > 0:
        return -1
    if window.facts[FORCED] > 0:
        return min(total, forced) if top else max(total, forced)
    return total


@kernel
def _with_forced(window: Window, search: Search, c: int) -> int:
    """Return what the slots of cut c hold at most (or least) when the others cannot take all forced requests.

    -1 where there are more forced requests than slots.
    """
    v, must = window.v, window.must
    K = v.size
    inside, outside = 0, 0
    for w in range(window.slots.size):
        if search.inside[c, w] == 1:
            inside += window.slots[w]
        else:
            outside += window.slots[w]
    needed = window.facts[FORCED] - outside
    if needed > inside:
        return -1
    total = 0
    free = inside - max(0, needed)
    for turn in range(K):
        k = K - 1 - turn if search.sense[c] > 0 else turn
        taken = min(must[k], max(0, needed))
        needed -= taken
        more = min(window.n[k] - taken, free)
        free -= more
        total += (taken + more) * v[k]
    return total


@kernel
def refresh(window: Window, search: Search) -> bool:
    """Set the right sides of the box and of all cuts at the node at hand; False where a cut shows that it is empty."""
    W, T = window.peak.shape
    first = W * T + T
    for w in range(W):
        search.right[first + w], search.right[first + W + w] = search.low[w], -search.high[w]
    for c in range(search.known[CUT_COUNT]):
        sense = search.sense[c]
        if sense == 0:
            continue
        search.limit[c] = limit_of(window, search, c)
        if search.limit[c] < 0:
            return False
        search.right[first + 2 * W + c] = -sense * search.limit[c]
        total = 0
        for w in range(window.slots.size):
            if search.inside[c, w] == 1:
                total += search.low[w] if sense > 0 else search.high[w]
        if sense * (total - search.limit[c]) > 0:
            return False
    return True


@kernel
def separate(window: Window, search: Search) -> int:
    """Add cuts that the point violates; return how many.

    Candidates are the workers that hold most a slot, one more at a time, and those that hold least.
    """
    slots, point = window.slots, search.point
    W, T = window.peak.shape
    order = search.scratch[7]
    added = 0
    for sense in (1, -1):
        count = 0
        for w in range(W):
            if search.fixed[w] == slots[w]:
                continue
            key = sense * point[T + w] / slots[w]
            at = count
            while at > 0 and sense * point[T + order[at - 1]] / slots[order[at - 1]] < key:
                order[at] = order[at - 1]
                at -= 1
            order[at] = w
            count += 1
        c = _free_cut(window, search)
        if c < 0:
            return added
        for w in range(W):
            search.inside[c, w] = 0
        search.sense[c] = sense
        total = 0.0
        worst, best = 0.01, -1
        for i in range(count):
            w = order[i]
            search.inside[c, w] = 1
            total += point[T + w]
            if i == 0 and slots[w] == 1:
                continue  # its box says as much
            limit = limit_of(window, search, c)
            if limit >= 0 and sense * (total - limit) / (i + 1) > worst:
                worst, best = sense * (total - limit) / (i + 1), i
        if best < 0:
            search.sense[c] = 0
            continue
        for i in range(best + 1, count):
            search.inside[c, order[i]] = 0
        search.limit[c] = limit_of(window, search, c)
        search.right[W * T + T + 2 * W + c] = -sense * search.limit[c]
        search.known[CUT_COUNT] = max(search.known[CUT_COUNT], c + 1)
        added += 1
    return added


@kernel
def _free_cut(window: Window, search: Search) -> int:
    """Return the number of a cut that is not in the basis, -1 for none."""
    W, T = window.peak.shape
    first = W * T + T + 2 * W
    count = search.known[CUT_COUNT]
    for c in range(count):
        if search.sense[c] == 0:
            return c
    if count < CUTS:
        return count
    used = search.scratch[5]
    for c in range(count):
        used[c] = 0
    for j in range(W + T):
        if search.basis[j] >= first:
            used[search.basis[j] - first] = 1
    for c in range(count):
        if used[c] == 0:
            return c
    return -1
