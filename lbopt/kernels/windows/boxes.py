"""The box of a node, made as small as simple reasoning makes it.

Sides move to totals that exist; the largest request of a worker is at least its share of the low side, and at most
what the smallest others leave of the high side; a request whose class is known is taken from the pool for all
other workers. Repeated until nothing changes.

Which totals a worker can have at all: exact for one or two slots, from what is left; for more slots those that are
listed, or all in between where they are too many to be listed.

Lists are relaxed in one respect: a total of c requests may use a class more often than it has requests. So a total that
is missing is impossible, and one that is there need not be possible.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import Box, Pool


@kernel
def _single(v: Ints, avail: Ints, least: int, most: int, t: int, up: bool) -> int:
    """Return the size next to t, below or at it or (up) above or at it, of the classes least..most; -1 for none.

    Parameters
    ----------
    v, avail
        (K,) int64, sizes, ascending, tokens, and how many requests of each are left.
    least, most, t, up
        The classes; tokens; the side of t.
    """
    if up:
        k = max(least, last_fitting(v, t - 1) + 1)
        while k <= most and avail[k] == 0:
            k += 1
        return v[k] if k <= most else -1
    k = min(most, last_fitting(v, t))
    while k >= least and avail[k] == 0:
        k -= 1
    return v[k] if k >= least else -1


@kernel
def _pair(v: Ints, avail: Ints, least: int, most: int, t: int, up: bool) -> int:
    """Return the same for the total of two requests, the larger one of the classes least..most.

    Parameters
    ----------
    v, avail
        (K,) int64, sizes, ascending, tokens, and how many requests of each are left.
    least, most, t, up
        The classes; tokens; the side of t.
    """
    best = -1
    i, j = 0, most
    while i <= j and j >= least:
        if avail[j] == 0:
            j -= 1
        elif avail[i] == 0 or (i == j and avail[i] == 1):
            i += 1
        else:
            total = v[i] + v[j]
            if total == t:
                return t
            if total < t:
                if not up and total > best:
                    best = total
                i += 1
            else:
                if up and (best < 0 or total < best):
                    best = total
                j -= 1
    return best


@kernel
def total_of_left(pool: Pool, avail: Ints, left: int, least: int, most: int, t: int, up: bool) -> int:
    """Return the total next to t that `left` requests may have, the largest of the classes least..most; -1 for none.

    Below or at t; with `up` above or at it.

    Parameters
    ----------
    avail
        (K,) int64, how many of them are left.
    left, least, most, t, up
        The number of requests; the classes; tokens; the side of t.
    """
    v, small = pool.v, pool.small
    if left == 0:
        return 0 if (t <= 0 if up else t >= 0) else -1
    if left == 1:
        return _single(v, avail, least, most, t, up)
    if left == 2:
        return _pair(v, avail, least, most, t, up)
    low = max(small[left], v[least] + small[left - 1])
    high = left * v[most]
    t = max(t, low) if up else min(t, high)
    if not low <= t <= high:
        return -1
    first, last = pool.begin[left], pool.begin[left + 1]
    if first < last:
        at = last_fitting(pool.listed[first:last], t - 1 if up else t) + (1 if up else 0)
        if not 0 <= at < last - first:
            return -1
        t = pool.listed[first + at]
    return t if low <= t <= high else -1


@kernel
def total_next_to(pool: Pool, slots: Ints, box: Box, w: int, t: int, up: bool) -> int:
    """Return the total next to t that worker w may have at this node: <= t, or >= t with `up`; -1 for none.

    Parameters
    ----------
    w, t, up
        The worker, tokens, the side of t.
    """
    held = box.held[w]
    rest = total_of_left(pool, box.avail, slots[w] - box.fixed[w], box.least[w], box.most[w], t - held, up)
    return held + rest if rest >= 0 else -1


@kernel
def snap(pool: Pool, slots: Ints, box: Box) -> bool:
    """Tighten the box of the node at hand in place; False where it is empty."""
    v, small, n = pool.v, pool.small, pool.n
    low, high, first, last, avail = box.low, box.high, box.first, box.last, box.avail
    fixed, held, least, most = box.fixed, box.held, box.least, box.most
    W, K, D = slots.size, v.size, first.shape[1]
    for k in range(K):
        avail[k] = n[k]
    for w in range(W):
        fixed[w], held[w] = 0, 0
        least[w], most[w] = first[w, 0], last[w, 0]
        for at in range(min(D, slots[w])):
            if first[w, at] < last[w, at]:
                break
            if avail[last[w, at]] == 0:
                return False
            _take_next(w, v, box)
    changed = True
    while changed:
        changed = False
        for w in range(W):
            while True:
                left = slots[w] - fixed[w]
                for turn in range(2):
                    if left > 0:
                        b = min(most[w], last_fitting(v, high[w] - held[w] - small[left - 1]))
                        a = max(least[w], last_fitting(v, -((held[w] - low[w]) // left) - 1) + 1)
                        while b >= a and avail[b] == 0:
                            b -= 1
                        while a <= b and avail[a] == 0:
                            a += 1
                        if a > b:
                            return False
                        least[w], most[w] = a, b
                        if fixed[w] < D:
                            first[w, fixed[w]], last[w, fixed[w]] = a, b
                    if turn == 0:
                        rest = total_of_left(pool, avail, left, least[w], most[w], low[w] - held[w], True)
                        more = total_of_left(pool, avail, left, least[w], most[w], high[w] - held[w], False)
                        if rest < 0 or more < 0 or rest > more:
                            return False
                        low[w], high[w] = held[w] + rest, held[w] + more
                if left == 0 or least[w] < most[w] or fixed[w] >= D:
                    break
                _take_next(w, v, box)
                changed = True
    return True


@kernel
def _take_next(w: int, v: Ints, box: Box) -> None:
    """Bind the next request of worker w, whose class is known."""
    k = box.least[w]
    at = box.fixed[w] + 1
    box.avail[k] -= 1
    box.fixed[w] = at
    box.held[w] += v[k]
    box.least[w], box.most[w] = 0, k
    if at < box.first.shape[1]:
        box.least[w] = box.first[w, at]
        box.most[w] = min(k, box.last[w, at])
