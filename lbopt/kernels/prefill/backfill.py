"""Backfill: the oldest that fit into a pass, the longest of them first; then who is short enough for what is left free.

PBAA serves the longest first as soon as a queue is longer than a pass, and so keeps many short ones waiting for few
long ones. This rule, which is ours, keeps the order of arrival among batches and takes the order of length only within
one, as backfilling does in schedulers of parallel jobs.

1. The batch is the longest prefix of the queue whose cost does not exceed the headroom of all units, at least one.
2. The longest of it first, each goes to the least loaded unit if it fits there: if it needs no more passes than on an
   empty unit. So a prompt of at most a chunk fits as a whole, and of a longer one what is beyond its full chunks has to
   fit. Who does not fit is kept.
3. The next LOOKED of the queue, the oldest first, go to the least loaded unit if they fit.
4. If what is still kept would fill more than `split` hundredths of a pass, the oldest of it go to the least loaded unit
   while one has headroom, and are computed in parts: a queue that long costs more than a second pass. Not so where the
   pass has its batch already and is topped up.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import KEEP
from lbopt.kernels.prefill.cost import cost, least_cost, least_loaded

#: How many of the queue behind a batch are tried for what it leaves free.
LOOKED = 256


@kernel
def backfill(
    parameters: Record,
    length: Ints,
    hits: Ints,
    batch: Ints,
    g: int,
    chunk: int,
    load: Ints,
    tops_up: bool,
    key: Ints,
    unit: Ints,
) -> None:
    """Write a unit or KEEP for each position of `batch`, which is the whole queue, into `unit`.

    Parameters
    ----------
    parameters, length, hits, batch, g, chunk, load, tops_up, key, unit
        As of `allocation.allocate`.
    """
    m, D = batch.size, load.size
    room = 0
    for d in range(D):
        room += max(0, chunk - load[d])
    prefix = 0
    while prefix < m and room > 0:
        room -= least_cost(length, hits, batch[prefix], g)
        if room < 0 and prefix > 0:
            break
        key[prefix] = -length[batch[prefix]]
        prefix += 1
    for k in np.argsort(key[:prefix], kind="mergesort"):  # equal lengths: the oldest first
        unit[k] = _fit(length, hits, batch[k], g, chunk, load)
    unit[prefix:m] = KEEP
    for k in range(prefix, min(m, prefix + LOOKED)):
        unit[k] = _fit(length, hits, batch[k], g, chunk, load)
    if tops_up:
        return
    kept = 0
    for k in range(m):
        if unit[k] == KEEP:
            kept += least_cost(length, hits, batch[k], g)
    if 100 * kept <= parameters.split * D * chunk:
        return
    for k in range(m):
        if unit[k] == KEEP:
            d = least_loaded(load)
            if load[d] >= chunk:
                return
            unit[k] = d
            load[d] += cost(length, hits, batch[k], g, d)


@kernel
def _fit(length: Ints, hits: Ints, i: int, g: int, chunk: int, load: Ints) -> int:
    """Put request i on the least loaded unit if it needs no more passes there than on an empty one; return it or KEEP.

    Parameters
    ----------
    length, hits, i, g, chunk
        As of `allocation.allocate`, and the request.
    load
        int64 (D,), changed in place.
    """
    d = least_loaded(load)
    tokens = cost(length, hits, i, g, d)
    beyond = (max(1, tokens) - 1) % chunk + 1
    if load[d] > chunk - beyond:
        return KEEP
    load[d] += tokens
    return d
