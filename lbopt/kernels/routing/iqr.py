"""iqr: fewest requests first, but no worker whose load is an outlier (arXiv 2512.16134, algorithm 3).

Longest request first; for each, the workers are safe whose load is at most

    Q3 + k (Q3 - Q1)                                 (tokens)

with the quartiles of the loads of all workers, those of this call's earlier requests included. Of the safe ones the
worker with fewest requests takes it; ties: fewest tokens, then lowest number. Since the lowest load is at most Q3, some
worker is always safe. It may have no free slot, about which the source says nothing: then the mask is dropped for this
request, and all workers with a free slot are eligible.

The threshold is computed in integers, so that a load equal to it is safe whatever the numbers: the percentiles that
are offered lie at quarters between two loads, and k comes in thousandths.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import (
    PERCENTILE_HIGHER,
    PERCENTILE_LOWER,
    PERCENTILE_NEAREST,
    PERCENTILE_WEIBULL,
)
from lbopt.kernels.routing.state import Room, Shown, Waiting
from lbopt.kernels.stable_order import ascending, stable_order

_LARGEST = 2**62


@kernel
def iqr(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Place the oldest U of the pool, longest first; returns positions filled."""
    load, free, running, _ = room
    pool = waiting.pool
    reach = min(free.sum(), pool.size)
    size = np.empty(reach, np.int64)
    for position in range(reach):
        size[position] = waiting.prompt[pool[position]]
    order = stable_order(-size)  # stable: the earlier of two equal requests goes first
    rising = ascending(load)
    for rank in range(reach):
        position = order[rank]
        w = _least(heaviest_safe(parameters, rising), load, running, free)
        if w < 0:
            w = _least(rising[-1], load, running, free)
        choice[position] = w
        _raise_one(rising, load[w], load[w] + size[position])
        load[w] += size[position]
        running[w] += 1
        free[w] -= 1
    return reach


@kernel
def bind_iqr(parameters: Record, shown: Shown) -> int:
    """Return the worker to which one request is bound, of all; what is queued there counts in batch and load."""
    virtual_load = shown.load + shown.queued_tokens
    limit = heaviest_safe(parameters, ascending(virtual_load))
    room = shown.running + 1  # more than none: on arrival any worker will do
    return _least(limit, virtual_load, shown.running + shown.queued, room)


@kernel
def heaviest_safe(parameters: Record, ascending: Ints) -> int:
    """Return the largest whole load that is not masked, floor(Q3 + k (Q3 - Q1)), for loads below 2**60 tokens."""
    thousandths = parameters.thousandths
    upper = quadruple_quartile(parameters.percentile, 3, ascending)
    spread = upper - quadruple_quartile(parameters.percentile, 1, ascending)
    if thousandths > 0 and spread // 1000 >= _LARGEST // thousandths:
        return ascending[-1]  # the product would leave int64, and is above every load
    # 4 load <= upper + k spread for whole loads, where the right side may be rounded down
    stretched = spread // 1000 * thousandths + spread % 1000 * thousandths // 1000
    return (upper + stretched) // 4


@kernel
def quadruple_quartile(method: int, quarters: int, ascending: Ints) -> int:
    """Return four times the percentile 25 * `quarters` of the ascending loads, by the method of that number."""
    n = ascending.size
    place = (n - 1) * quarters  # four times the position, counted from 0
    if method == PERCENTILE_LOWER:
        place -= place % 4
    elif method == PERCENTILE_HIGHER:
        place += -place % 4
    elif method == PERCENTILE_NEAREST:
        below, beyond = place // 4, place % 4
        place = 4 * (below + 1) if beyond > 2 or (beyond == 2 and below % 2 == 1) else 4 * below  # half to even
    elif method == PERCENTILE_WEIBULL:
        place = min(max((n + 1) * quarters - 4, 0), 4 * (n - 1))
    below, beyond = place // 4, place % 4
    if beyond == 0:
        return 4 * ascending[below]
    return 4 * ascending[below] + beyond * (ascending[below + 1] - ascending[below])


@kernel
def _least(limit: int, load: Ints, batch: Ints, room: Ints) -> int:
    """Worker with room, a load of at most `limit` and the least (batch, load, number), or -1.

    Parameters
    ----------
    limit
        Tokens.
    load, batch, room
        int64 (G,), tokens, requests, and whether there is room (> 0).
    """
    w = -1
    for g in range(load.size):
        if room[g] <= 0 or load[g] > limit:
            continue
        if w < 0 or batch[g] < batch[w] or (batch[g] == batch[w] and load[g] < load[w]):
            w = g
    return w


@kernel
def _raise_one(ascending: Ints, old: int, new: int) -> None:
    """Replace one entry `old` of the ascending array by the larger `new`."""
    r = np.searchsorted(ascending, old)
    while r + 1 < ascending.size and ascending[r + 1] < new:
        ascending[r] = ascending[r + 1]
        r += 1
    ascending[r] = new
