"""Requests that only some workers serve: what a rule is shown of the workers, kind by kind.

Requests that the same workers serve are of one kind. A request that is bound on arrival is shown the workers of its
kind alone. From a pool, kinds choose one after the other, that of the oldest waiting request first, and to each of them
all other workers are full. Round-robin has a turn for each kind, as routers have one for each model.

Arrays for this are allocated once, with the state: allocations in the loop cost time to compile.

Source: among queues, that with the oldest head goes first in the flow control of the Gateway API Inference Extension
(`bestHead`); the rest is ours.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import Detail


@kernel
def list_kinds(pool: Ints, kind: Ints, kinds: Ints, marked: Ints) -> int:
    """Write the kinds of the waiting requests into `kinds`, that of the oldest request first; returns how many.

    Parameters
    ----------
    pool, kind
        int64, numbers of the waiting requests in order of revelation; int64 (N,), the kind of each request.
    kinds, marked
        int64 (K,), changed in place; the second is scratch.
    """
    count = 0
    for k in range(kinds.size):
        marked[k] = 0
    for position in range(pool.size):
        if count == kinds.size:
            break
        k = kind[pool[position]]
        if marked[k] == 0:
            marked[k] = 1
            kinds[count] = k
            count += 1
    return count


@kernel
def take_kind(k: int, pool: Ints, kind: Ints, asked: Ints) -> int:
    """Write the waiting requests of kind `k` into `asked`, int64 (N,), in their order; returns how many there are."""
    count = 0
    for position in range(pool.size):
        if kind[pool[position]] == k:
            asked[count] = pool[position]
            count += 1
    return count


@kernel
def spread_choice(reach: int, count: int, pool: Ints, asked: Ints, choice: Ints) -> None:
    """Let `choice`, of the first `reach` of `count` requests that were asked for, be that of all the pool, in place."""
    place = count - 1
    for position in range(pool.size - 1, -1, -1):
        w = -1
        if place >= 0 and pool[position] == asked[place]:
            if place < reach:
                w = choice[place]
            place -= 1
        choice[position] = w


@kernel
def close_others(k: int, allowed: Ints, free: Ints) -> bool:
    """Take the free slots of workers that do not serve kind `k` out of `free`; returns whether one is left."""
    left = 0
    for g in range(free.size):
        free[g] *= allowed[k, g]
        left += free[g]
    return left > 0


@kernel
def list_eligible(k: int, allowed: Ints, detail: Detail) -> int:
    """Write the workers that serve kind `k` into `Detail.open_workers`; returns how many there are."""
    count = 0
    for w in range(allowed.shape[1]):
        if allowed[k, w] == 1:
            detail.open_workers[count] = w
            count += 1
    return count
