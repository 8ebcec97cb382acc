"""The box of a node, made as small as simple reasoning makes it.

Sides move to totals that exist; the largest request of a worker is at least its share of the low side, and at most
what the smallest others leave of the high side; a request whose class is known is taken from the pool for all
other workers. Repeated until nothing changes.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import last_fitting
from lbopt.kernels.windows.state import Box, Pool
from lbopt.kernels.windows.sums import total_of_left


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
