"""PBAA, the greedy allocation of staggered batch scheduling (arXiv 2512.16134, Algorithm 2).

Those that earlier dispatches left over come before the new ones; among equals the longest first. A request goes to the
unit on which the most headroom remains after it, the lowest number on ties, and any headroom above 0 before it admits
it however long it is; else it is kept, and refused when it has been kept more than a limit. In the cache-aware mode a
request costs what is not cached. Then the unit with the most headroom *after* it may have none *before* it: the printed
rule keeps such a request although another unit has room, the mended one looks only at units with headroom. An option
that the source does not have keeps what would exceed the chunk, unless the unit is empty.

Without the cache the choice is the least loaded unit for every length: the top of a binary heap of load and number in
one integer, of which only the top ever changes. With it each request looks at all units, as it has a hit on each.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.batch import Batch, cost
from lbopt.kernels.prefill.codes import KEEP, REFUSE

#: Longest and number in one integer: lengths from 2**61 / (batch) on are sorted the slow way.
_LARGEST_KEY = 2**61
#: More than any load.
_NEVER = 2**62


@kernel
def pbaa(batch: Batch, m: int, g: int, chunk: int, load: Ints) -> None:
    """Write a unit, KEEP or REFUSE for each of the first m positions; as of `allocation.allocate`."""
    rule, length, hits, unit = batch.rule, batch.length, batch.hits, batch.unit
    deferred, shown = batch.deferred, batch.shown[:m]
    in_order(length, deferred, shown, batch.key)
    if rule.cache != 0 and hits.size > 0:
        _by_cache(batch, m, g, chunk, load)
    else:
        _by_length(batch, m, chunk, load)
        for k in range(m):
            if unit[k] >= 0:
                load[unit[k]] += cost(length, hits, shown[k], g, unit[k])
    if rule.limit >= 0:
        for k in range(m):
            if unit[k] == KEEP and deferred[shown[k]] + 1 > rule.limit:
                unit[k] = REFUSE


@kernel
def in_order(length: Ints, deferred: Ints, shown: Ints, key: Ints) -> None:
    """Write the positions of `shown` into `key`: left over before new, then the longest first, then the oldest.

    Parameters
    ----------
    length, deferred
        int64 (n,), tokens, and how often each request was kept.
    shown
        int64 (m,), request numbers, the oldest first.
    key
        int64 (>= m,), written.
    """
    m = shown.size
    bits = _bits(m)
    longest = 0
    for k in range(m):
        longest = max(longest, length[shown[k]])
    new = longest + 1
    if new >= _LARGEST_KEY >> (bits + 1):
        first = 0
        order = np.argsort(-length[shown], kind="mergesort")
        for late in range(2):
            for k in order:
                if (deferred[shown[k]] == 0) == (late == 1):
                    key[first] = k
                    first += 1
        return
    for k in range(m):
        i = shown[k]
        rank = longest - length[i] + (new if deferred[i] == 0 else 0)
        key[k] = (rank << bits) + k
    key[:m].sort()
    mask = (1 << bits) - 1
    for k in range(m):
        key[k] &= mask


@kernel
def _bits(count: int) -> int:
    """Return the bits in which numbers below `count` are written, at least 1."""
    bits = 1
    while count >> bits > 0:
        bits += 1
    return bits


@kernel
def _by_length(batch: Batch, m: int, chunk: int, load: Ints) -> None:
    """Give each request, in the order of `key`, the least loaded unit; loads of this call are by length, in a heap."""
    length, shown, order, unit = batch.length, batch.shown, batch.key, batch.unit
    D, whole = load.size, batch.rule.whole != 0
    bits = _bits(D)
    mask = (1 << bits) - 1
    heap = np.empty(D, dtype=np.int64)
    for d in range(D):
        heap[d] = (load[d] << bits) + d
    heap.sort()  # a sorted array is a heap
    full = chunk << bits
    for position in range(m):
        k = order[position]
        top = heap[0]
        if top >= full:
            for rest in range(position, m):
                unit[order[rest]] = KEEP
            return
        size = length[shown[k]]
        if not _admits(whole, top >> bits, size, chunk):
            unit[k] = KEEP
            continue
        unit[k] = top & mask
        top += size << bits
        hole, child = 0, 1
        while child < D:
            if child + 1 < D and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= top:
                break
            heap[hole] = heap[child]
            hole = child
            child = 2 * hole + 1
        heap[hole] = top


@kernel
def _by_cache(batch: Batch, m: int, g: int, chunk: int, load: Ints) -> None:
    """Give each request, in the order of `key`, the unit with the least load after what it costs there.

    The printed rule looks at all units and asks then whether the best has room; the mended one looks at those that do.
    """
    length, hits, shown, key, unit = batch.length, batch.hits, batch.shown, batch.key, batch.unit
    printed, whole = batch.rule.printed != 0, batch.rule.whole != 0
    looks_ahead = whole and not printed
    offered = load.copy()
    if not printed:
        offered[load >= chunk] = _NEVER
    for position in range(m):
        k = key[position]
        i = shown[k]
        best, least = 0, _NEVER
        for d in range(load.size):
            after = offered[d] - hits[i, g, d]  # and the length, which is the same on all units
            if after < least and (not looks_ahead or _admits(whole, load[d], length[i] - hits[i, g, d], chunk)):
                best, least = d, after
        if _admits(whole, load[best], length[i] - hits[i, g, best], chunk):
            unit[k] = best
            load[best] = least + length[i]
            offered[best] = load[best] if printed or load[best] < chunk else _NEVER
        else:
            unit[k] = KEEP


@kernel
def _admits(whole: bool, load: int, tokens: int, chunk: int) -> bool:
    """Tell whether a unit takes a request; if it must fit as a whole, then what fits nowhere goes to an empty unit."""
    return load < chunk and (not whole or load <= max(0, chunk - tokens))
