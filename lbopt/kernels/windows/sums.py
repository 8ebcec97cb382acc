"""Which totals a worker can have at all: exact for one or two slots, from what is left; listed or tabulated for a few
more; for many, all in between.

Few totals are listed, more are tabulated, one bit each. Lists and tables are relaxed in one respect: a total of c
requests may use a class more often than it has requests. So a total that is missing is impossible, and one that is
there need not be possible.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.terms import Search, Window, Words


@kernel
def tabulate(v: Ints, most: int, sums: Words) -> None:
    """Set bit t of sums[c] where c classes, 2 <= c <= most, have the total t; row 1 holds the sizes."""
    one = np.uint64(1)
    for size in v:
        sums[1, size >> 6] |= one << np.uint64(size & 63)
    for c in range(2, most + 1):
        words = ((c - 1) * v[v.size - 1] >> 6) + 1
        for size in v:
            jump, shift = size >> 6, np.uint64(size & 63)
            if size & 63 == 0:
                for i in range(words):
                    sums[c, i + jump] |= sums[c - 1, i]
            else:
                back = np.uint64(64) - shift
                for i in range(words):
                    sums[c, i + jump] |= sums[c - 1, i] << shift
                    sums[c, i + jump + 1] |= sums[c - 1, i] >> back


@kernel
def _has(window: Window, c: int, t: int) -> bool:
    return (window.sums[c, t >> 6] >> np.uint64(t & 63)) & np.uint64(1) != 0


@kernel
def _last_listed(window: Window, c: int, t: int) -> int:
    """Return the position of the last listed total <= t of c requests; one before the first where there is none."""
    low, high = window.begin[c], window.begin[c + 1]
    while low < high:
        middle = (low + high) >> 1
        if window.listed[middle] <= t:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def class_at_most(v: Ints, size: int) -> int:
    """Return the largest class of at most so many tokens, -1 for none."""
    low, high = 0, v.size
    while low < high:
        middle = (low + high) >> 1
        if v[middle] <= size:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def class_of(v: Ints, size: int) -> int:
    """Return the class of exactly this size, -1 for none."""
    k = class_at_most(v, size)
    return k if k >= 0 and v[k] == size else -1


@kernel
def _single(v: Ints, avail: Ints, least: int, most: int, t: int, up: bool) -> int:
    """Return the size next to t, below or at it or (up) above or at it, of the classes least..most; -1 for none."""
    if up:
        k = max(least, class_at_most(v, t - 1) + 1)
        while k <= most and avail[k] == 0:
            k += 1
        return v[k] if k <= most else -1
    k = min(most, class_at_most(v, t))
    while k >= least and avail[k] == 0:
        k -= 1
    return v[k] if k >= least else -1


@kernel
def _pair(v: Ints, avail: Ints, least: int, most: int, t: int, up: bool) -> int:
    """The same for the total of two requests, the larger one of the classes least..most."""
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
def total_next_to(window: Window, search: Search, w: int, t: int, up: bool) -> int:
    """Return the total next to t that worker w may have at this node: <= t, or >= t with `up`; -1 for none."""
    v, avail, held = window.v, search.avail, search.held[w]
    left = window.slots[w] - search.fixed[w]
    if left == 0:
        return held if (held >= t if up else held <= t) else -1
    least, most = search.least_next[w], search.most_next[w]
    if left <= 2:
        rest = _single(v, avail, least, most, t - held, up) if left == 1 else _pair(v, avail, least, most, t - held, up)
        return held + rest if rest >= 0 else -1
    low = held + max(window.small[left], v[least] + window.small[left - 1])
    high = held + left * v[most]
    t = max(t, low) if up else min(t, high)
    if not low <= t <= high:
        return -1
    if window.begin[left] < window.begin[left + 1]:
        at = _last_listed(window, left, t - held - (1 if up else 0)) + (1 if up else 0)
        if not window.begin[left] <= at < window.begin[left + 1]:
            return -1
        t = held + window.listed[at]
    elif left < window.sums.shape[0]:
        step = 1 if up else -1
        while low <= t <= high and t - held <= left * v[v.size - 1] and not _has(window, left, t - held):
            t += step
    return t if low <= t <= high else -1
