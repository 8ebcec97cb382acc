"""Which requests of a batch go to which unit of an instance: what they cost there, PBAA, and the other rules.

A batch that goes to one instance, what its requests cost there, and which unit has the least to compute.

PBAA, the greedy allocation of staggered batch scheduling (arXiv 2512.16134, Algorithm 2).

Those that earlier dispatches left over come before the new ones; among equals the longest first. A request goes to the
unit on which the most headroom remains after it, the lowest number on ties, and any headroom above 0 before it admits
it however long it is; else it is kept, and refused when it has been kept more than a limit. In the cache-aware mode a
request costs what is not cached. Then the unit with the most headroom *after* it may have none *before* it: the printed
rule keeps such a request although another unit has room, the mended one looks only at units with headroom. An option
that the source does not have keeps what would exceed the chunk, unless the unit is empty.

Without the cache the choice is the least loaded unit for every length: the top of a binary heap of load and number in
one integer, of which only the top ever changes. With it each request looks at all units, as it has a hit on each.

Units for a batch of requests that goes to one instance: a rule by number, as in `kernels.routing`.

A rule sees the batch in order of arrival and the tokens that each unit still has to compute; it writes a unit for each
position, KEEP to leave the request at the scheduler until the next dispatch, or REFUSE. Only the part of a prompt that
is not cached on the unit costs.

*Backfill*, which is ours. PBAA serves the longest first as soon as a queue is longer than a pass, and so keeps many
short ones waiting for few long ones. This rule keeps the order of arrival among batches and takes the order of length
only within one, as backfilling does in schedulers of parallel jobs.

1. The batch is the longest prefix of the queue whose cost does not exceed the headroom of all units, at least one.
2. The longest of it first, each goes to the least loaded unit if it fits there: if it needs no more passes than on an
   empty unit. So a prompt of at most a chunk fits as a whole, and of a longer one what is beyond its full chunks has to
   fit. Who does not fit is kept.
3. The next LOOKED of the queue, the oldest first, go to the least loaded unit if they fit.
4. If what is still kept would fill more than `split` hundredths of a pass, the oldest of it go to the least loaded unit
   while one has headroom, and are computed in parts: a queue that long costs more than a second pass. Not so where the
   pass has its batch already and is topped up.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import BACKFILL, IN_TURN, KEEP, LONGEST_FIRST, PBAA, REFUSE
from lbopt.kernels.stable_order import stable_order

#: An allocation, and the parameters of all of them.
RULE = integers(
    "code",  # see `codes`
    "printed",  # 1: the printed rule, 0: the mended one; they differ only with a cache
    "cache",  # 1: a request costs what is not cached
    "limit",  # kept more often than this, a request is refused; -1: never
    "whole",  # 1: keep what would exceed the chunk of a unit that is not empty
    "split",  # of BACKFILL: kept requests of more than so many hundredths of a pass are computed in parts
)


@by_reference
class Batch(NamedTuple):
    """Requests that are shown to a rule, and its answer."""

    rule: Record  # RULE
    length: Ints  # int64 (n,), tokens: see `state.Requests`
    hits: Ints  # int64 (n, N, D), tokens
    deferred: Ints  # int64 (n,), dispatches that kept each request at the scheduler
    shown: Ints  # int64 (m,), request numbers, the oldest first, in the first places
    key: Ints  # int64 (m,), scratch
    unit: Ints  # int64 (m,), output: the unit of each position, KEEP or REFUSE


@kernel
def cost(length: Ints, hits: Ints, i: int, g: int, d: int) -> int:
    """Return the tokens that request i costs on unit d of instance g."""
    return length[i] if hits.size == 0 else length[i] - hits[i, g, d]


@kernel
def least_cost(length: Ints, hits: Ints, i: int, g: int) -> int:
    """Return the tokens that request i costs where most of it is cached, on instance g."""
    if hits.size == 0:
        return length[i]
    most = 0
    for d in range(hits.shape[2]):
        most = max(most, hits[i, g, d])
    return length[i] - most


@kernel
def least_loaded(load: Ints) -> int:
    """Return the unit with the least load; ties go to the lowest number."""
    d = 0
    for other in range(1, load.size):
        if load[other] < load[d]:
            d = other
    return d


@kernel
def longest_first(length: Ints, shown: Ints, count: int, key: Ints) -> Ints:
    """Return the first `count` positions, the longest prompt first; of equal lengths the oldest."""
    for k in range(count):
        key[k] = -length[shown[k]]
    return stable_order(key[:count])


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
        order = stable_order(-length[shown])
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


#: How many of the queue behind a batch are tried for what it leaves free.
LOOKED = 256


@kernel
def chooses(code: int) -> bool:
    """Tell whether the rule is shown the whole queue and may keep or refuse; else it places a batch that has room."""
    return code in (PBAA, BACKFILL)


@kernel
def allocate(batch: Batch, m: int, g: int, turn: int, chunk: int, tops_up: bool, load: Ints) -> None:
    """Write the unit of each of the first m positions of a batch for instance g, and what it costs there into `load`.

    Parameters
    ----------
    batch, m, g
        The batch, requests that are shown to the rule, and the instance.
    turn
        How many requests were placed there before.
    chunk
        Most tokens of a unit in a pass; less `load` it is the headroom of the unit.
    tops_up
        Whether the pass that this is for has got a batch before.
    load
        int64 (D,): tokens that each unit has to compute; changed in place.
    """
    code = batch.rule.code
    if code == PBAA:
        pbaa(batch, m, g, chunk, load)
        return
    if code == BACKFILL:
        _backfill(batch, m, g, chunk, tops_up, load)
        return
    length, hits, shown, unit = batch.length, batch.hits, batch.shown, batch.unit
    if code == LONGEST_FIRST and m > 1:
        for k in longest_first(length, shown, m, batch.key):
            unit[k] = least_loaded(load)
            load[unit[k]] += cost(length, hits, shown[k], g, unit[k])
        return
    for k in range(m):
        unit[k] = place(code, turn + k, load)
        load[unit[k]] += cost(length, hits, shown[k], g, unit[k])


@kernel
def place(code: int, turn: int, load: Ints) -> int:
    """Return the unit of one request; ties go to the lowest number."""
    return turn % load.size if code == IN_TURN else least_loaded(load)


@kernel
def _backfill(batch: Batch, m: int, g: int, chunk: int, tops_up: bool, load: Ints) -> None:
    """Write a unit or KEEP for each position of the batch, which is the whole queue."""
    length, hits, shown, unit = batch.length, batch.hits, batch.shown, batch.unit
    room = 0
    for d in range(load.size):
        room += max(0, chunk - load[d])
    prefix = 0
    while prefix < m and room > 0:
        room -= least_cost(length, hits, shown[prefix], g)
        if room < 0 and prefix > 0:
            break
        prefix += 1
    unit[:m] = KEEP
    for k in longest_first(length, shown, prefix, batch.key):
        unit[k] = _fit(length, hits, shown[k], g, chunk, load)
    for k in range(prefix, min(m, prefix + LOOKED)):
        unit[k] = _fit(length, hits, shown[k], g, chunk, load)
    kept = 0
    for k in range(m):
        if unit[k] == KEEP:
            kept += least_cost(length, hits, shown[k], g)
    if tops_up or 100 * kept <= batch.rule.split * load.size * chunk:
        return
    for k in range(m):
        if unit[k] == KEEP:
            d = least_loaded(load)
            if load[d] >= chunk:
                return
            unit[k] = d
            load[d] += cost(length, hits, shown[k], g, d)


@kernel
def _fit(length: Ints, hits: Ints, i: int, g: int, chunk: int, load: Ints) -> int:
    """Put request i on the least loaded unit if it needs no more passes there than on an empty one; return it or KEEP.

    Parameters
    ----------
    length, hits, i, g
        See `cost`.
    chunk, load
        Most tokens of a unit in a pass, and what each has; changed in place.
    """
    d = least_loaded(load)
    tokens = cost(length, hits, i, g, d)
    beyond = (max(1, tokens) - 1) % chunk + 1
    if load[d] > chunk - beyond:
        return KEEP
    load[d] += tokens
    return d
