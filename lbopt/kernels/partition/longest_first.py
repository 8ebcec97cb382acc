"""Longest first: the requests, largest first, each to one worker with a free slot; two ways to choose the worker.

By load: the lightest (LPT, Graham 1969), where slots abound. By need: the one that lacks most per free slot,
(target - load) / free, where nearly all slots will be filled: a worker whose few slots must carry much gets large
requests, however light others are. The open workers stand in a binary heap, so this costs N log G steps.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def longest_first(
    base: Ints, slots: Ints, sizes: Ints, order: Ints, target: int, by_need: int, load: Ints, assignment: Ints
) -> int:
    """Place all requests; `order` (N,) lists them largest first. Returns work done.

    `load` (G,) and `assignment` (N,) are written. The slots must suffice for all.
    """
    G = base.size
    free = slots.copy()
    heap = np.empty(G, np.int64)
    key = np.empty(G, np.float64)  # smallest first
    length = 0
    for g in range(G):
        load[g] = base[g]
        if free[g] > 0:
            heap[length] = g
            length += 1
            key[g] = (load[g] - target) / free[g] if by_need else float(load[g])
    for root in range(length // 2 - 1, -1, -1):
        _sift_down(key, heap, length, root)
    for r in range(order.size):
        i = order[r]
        g = heap[0]
        assignment[i] = g
        load[g] += sizes[i]
        free[g] -= 1
        if free[g] == 0:
            length -= 1
            heap[0] = heap[length]
        else:
            key[g] = (load[g] - target) / free[g] if by_need else float(load[g])
        _sift_down(key, heap, length, 0)
    return 20 * order.size


@kernel
def _sift_down(key: Floats, heap: Ints, length: int, root: int) -> None:
    """Restore the heap below `root`: smaller key first, then lower number."""
    if root >= length:
        return
    g = heap[root]
    while True:
        child = 2 * root + 1
        if child >= length:
            break
        if child + 1 < length:
            h, c = heap[child + 1], heap[child]
            if key[h] < key[c] or (key[h] == key[c] and h < c):
                child += 1
        c = heap[child]
        if key[c] > key[g] or (key[c] == key[g] and c > g):
            break
        heap[root] = c
        root = child
    heap[root] = g
