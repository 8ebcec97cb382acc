"""The box of a node, made as small as simple reasoning makes it.

Sides move to totals that exist; the largest request of a worker is at least its share of the low side, and at most
what the smallest others leave of the high side; a request whose class is known is taken from the pool for everybody
else. Repeated until nothing changes.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.windows.sums import class_at_most, total_next_to
from lbopt.kernels.windows.terms import Search, Window


@kernel
def snap(window: Window, search: Search) -> bool:
    """Tighten the box of the node at hand in place; False where it is empty."""
    v, slots, avail = window.v, window.slots, search.avail
    W, K, D = slots.size, v.size, search.item_least.shape[1]
    for k in range(K):
        avail[k] = window.n[k]
    for w in range(W):
        search.fixed[w], search.held[w] = 0, 0
        search.least_next[w], search.most_next[w] = search.item_least[w, 0], search.item_most[w, 0]
        at = 0
        while at < min(D, slots[w]) and search.item_least[w, at] == search.item_most[w, at]:
            if avail[search.item_most[w, at]] == 0:
                return False
            _take_next(window, search, w)
            at += 1
    changed = True
    while changed:
        changed = False
        for w in range(W):
            while True:
                left = slots[w] - search.fixed[w]
                if left > 0 and not _classes(window, search, w, left):
                    return False
                low = total_next_to(window, search, w, search.low[w], True)
                high = total_next_to(window, search, w, search.high[w], False)
                if low < 0 or high < 0 or low > high:
                    return False
                search.low[w], search.high[w] = low, high
                if left == 0 or not _classes(window, search, w, left):
                    if left == 0:
                        break
                    return False
                if search.least_next[w] < search.most_next[w] or search.fixed[w] >= D:
                    break
                _take_next(window, search, w)
                changed = True
    return True


@kernel
def _take_next(window: Window, search: Search, w: int) -> None:
    """Bind the next request of worker w, whose class is known."""
    k = search.least_next[w]
    at = search.fixed[w] + 1
    search.avail[k] -= 1
    search.fixed[w] = at
    search.held[w] += window.v[k]
    search.least_next[w], search.most_next[w] = 0, k
    if at < search.item_least.shape[1]:
        search.least_next[w] = search.item_least[w, at]
        search.most_next[w] = min(k, search.item_most[w, at])


@kernel
def _classes(window: Window, search: Search, w: int, left: int) -> bool:
    """Tighten the classes that the next request of worker w may have; False where there is none."""
    v, avail = window.v, search.avail
    most = min(search.most_next[w], class_at_most(v, search.high[w] - search.held[w] - window.small[left - 1]))
    share = -((search.held[w] - search.low[w]) // left)
    least = max(search.least_next[w], class_at_most(v, share - 1) + 1)
    while most >= least and avail[most] == 0:
        most -= 1
    while least <= most and avail[least] == 0:
        least += 1
    search.least_next[w], search.most_next[w] = least, most
    at = search.fixed[w]
    if at < search.item_least.shape[1]:
        search.item_least[w, at], search.item_most[w, at] = least, most
    return least <= most
