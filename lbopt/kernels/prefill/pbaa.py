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

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import KEEP, REFUSE

#: Longest and number in one integer: lengths from 2**61 / (batch) on are sorted the slow way.
_LARGEST_KEY = 2**61
#: More than any load.
_NEVER = 2**62


@kernel
def pbaa(
    parameters: Record,
    length: Ints,
    hits: Ints,
    deferred: Ints,
    batch: Ints,
    g: int,
    chunk: int,
    load: Ints,
    key: Ints,
    unit: Ints,
) -> None:
    """Write a unit, KEEP or REFUSE for each position of `batch` into `unit`.

    Parameters
    ----------
    parameters, length, hits, deferred, batch, g, chunk, key, unit
        As of `allocation.allocate`.
    load
        int64 (D,), tokens: grows by what the requests cost on their units, of which the rule without the cache knows
        only the length.
    """
    m = batch.size
    whole = parameters.whole != 0
    cached = parameters.cache != 0 and hits.size > 0
    in_order(length, deferred, batch, key)
    if cached:
        _by_cache(parameters.printed != 0, whole, length, hits, batch, g, chunk, load, key, unit)
    else:
        _by_length(whole, length, batch, chunk, load, key, unit)
        for k in range(m):
            if unit[k] >= 0:
                i = batch[k]
                load[unit[k]] += length[i] if hits.size == 0 else length[i] - hits[i, g, unit[k]]
    limit = parameters.limit
    if limit >= 0:
        for k in range(m):
            if unit[k] == KEEP and deferred[batch[k]] + 1 > limit:
                unit[k] = REFUSE


@kernel
def in_order(length: Ints, deferred: Ints, batch: Ints, key: Ints) -> None:
    """Write the positions of `batch` into `key`: left over before new, then the longest first, then the oldest.

    Parameters
    ----------
    length, deferred
        int64 (n,), tokens, and how often each request was kept.
    batch
        int64 (m,), request numbers, the oldest first.
    key
        int64 (>= m,), written.
    """
    m = batch.size
    bits = 1
    while m >> bits > 0:
        bits += 1
    longest = 0
    for k in range(m):
        longest = max(longest, length[batch[k]])
    new = longest + 1
    if new >= _LARGEST_KEY >> (bits + 1):
        first = 0
        for late in range(2):
            positions = np.empty(m, dtype=np.int64)
            size = 0
            for k in range(m):
                if (deferred[batch[k]] == 0) == (late == 1):
                    positions[size] = k
                    size += 1
            for k in np.argsort(-length[batch[positions[:size]]], kind="mergesort"):
                key[first] = positions[k]
                first += 1
        return
    for k in range(m):
        i = batch[k]
        rank = longest - length[i] + (new if deferred[i] == 0 else 0)
        key[k] = (rank << bits) + k
    key[:m].sort()
    mask = (1 << bits) - 1
    for k in range(m):
        key[k] &= mask


@kernel
def _by_length(whole: bool, length: Ints, batch: Ints, chunk: int, load: Ints, order: Ints, unit: Ints) -> None:
    """Give each request the least loaded unit; loads of this call are by length.

    Parameters
    ----------
    whole
        Whether to keep what would exceed the chunk of a unit that is not empty.
    length, batch, chunk, unit
        As of `allocation.allocate`.
    load
        int64 (D,), tokens; read only.
    order
        int64 (m,), the positions of `batch` in the order in which they are served.
    """
    m, D = batch.size, load.size
    bits = 1
    while D >> bits > 0:
        bits += 1
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
        size = length[batch[k]]
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
def _by_cache(
    printed: bool,
    whole: bool,
    length: Ints,
    hits: Ints,
    batch: Ints,
    g: int,
    chunk: int,
    load: Ints,
    order: Ints,
    unit: Ints,
) -> None:
    """Give each request the unit with the least load after what it costs there.

    Parameters
    ----------
    printed, whole
        See `state.PARAMETERS`.
    length, hits, batch, g, chunk, load, unit
        As of `allocation.allocate`.
    order
        int64 (m,), the positions of `batch` in the order in which they are served.
    """
    D = load.size
    looks_ahead = whole and not printed
    offered = load.copy()
    if not printed:
        offered[load >= chunk] = _NEVER
    for position in range(batch.size):
        k = order[position]
        i = batch[k]
        best, least = 0, _NEVER
        if looks_ahead:
            for d in range(D):
                after = load[d] - hits[i, g, d]
                if after < least and _admits(whole, load[d], length[i] - hits[i, g, d], chunk):
                    best, least = d, after
        else:
            for d in range(D):
                after = offered[d] - hits[i, g, d]  # and the length, which is the same on all units
                if after < least:
                    best, least = d, after
        if _admits(whole, load[best], length[i] - hits[i, g, best], chunk):
            unit[k] = best
            load[best] = least + length[i]
            offered[best] = load[best] if printed or load[best] < chunk else _NEVER
        else:
            unit[k] = KEEP


@kernel
def _admits(whole: bool, load: int, cost: int, chunk: int) -> bool:
    """Tell whether a unit takes a request; if it must fit as a whole, then what fits nowhere goes to an empty unit.

    Parameters
    ----------
    whole
        Whether it must fit.
    load, cost, chunk
        Tokens that the unit has, that the request costs there, and most of a pass.
    """
    return load < chunk and (not whole or load <= max(0, chunk - cost))
