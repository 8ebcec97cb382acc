"""Which totals a worker can have at all: exact for one slot, listed or tabulated for a few, for many all in between.

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
def total_at_most(window: Window, avail: Ints, w: int, t: int) -> int:
    """Return the largest total <= t that worker w may have, one below its least where there is none."""
    v, c = window.v, window.slots[w]
    t = min(t, window.high[w])
    if c == 1:
        k = class_at_most(v, t)
        while k >= 0 and avail[k] == 0:
            k -= 1
        return v[k] if k >= 0 else window.low[w] - 1
    if window.begin[c] < window.begin[c + 1]:
        at = _last_listed(window, c, t)
        return window.listed[at] if at >= window.begin[c] else window.low[w] - 1
    if c < window.sums.shape[0]:
        while t >= window.low[w] and not _has(window, c, t):
            t -= 1
    return max(t, window.low[w] - 1)


@kernel
def total_at_least(window: Window, avail: Ints, w: int, t: int) -> int:
    """Return the least total >= t that worker w may have, one above its largest where there is none."""
    v, c = window.v, window.slots[w]
    t = max(t, window.low[w])
    if c == 1:
        k = class_at_most(v, t - 1) + 1
        while k < v.size and avail[k] == 0:
            k += 1
        return v[k] if k < v.size else window.high[w] + 1
    if window.begin[c] < window.begin[c + 1]:
        at = _last_listed(window, c, t - 1) + 1
        return window.listed[at] if at < window.begin[c + 1] else window.high[w] + 1
    if c < window.sums.shape[0]:
        while t <= window.high[w] and not _has(window, c, t):
            t += 1
    return min(t, window.high[w] + 1)


@kernel
def snap(window: Window, search: Search) -> bool:
    """Move the sides of the box to totals that exist, and bind the requests of one-slot workers with one left.

    Returns False where the box is empty.
    """
    low, high, avail = search.low, search.high, search.avail
    W = low.size
    bound = search.scratch[3]
    for k in range(window.v.size):
        avail[k] = window.n[k]
    for w in range(W):
        bound[w] = 0
    changed = True
    while changed:
        changed = False
        for w in range(W):
            if bound[w] == 1:
                continue
            low[w] = total_at_least(window, avail, w, low[w])
            high[w] = total_at_most(window, avail, w, high[w])
            if low[w] > high[w]:
                return False
            if window.slots[w] == 1 and low[w] == high[w]:
                avail[class_of(window.v, low[w])] -= 1
                bound[w] = 1
                changed = True
    return True
