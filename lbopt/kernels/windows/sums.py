"""Which totals a worker can have at all: exact for one or two slots, from what is left; for more slots those that are
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
