"""The F-score, and BR-0 without a pool.

The F-score of BalanceRoute, eq. (1): by how much a batch of total size `delta` lowers the imbalance.

Adding `delta` tokens to worker g raises the envelope by max(0, delta - m), m = max L - L_g being g's margin, so

    F = delta - G * max(0, delta - m)          (tokens)

Concave in `delta`, F(0) = 0, peak m at delta = m. Summed over the admissions of a round, with margins refreshed after
each, the scores equal the fall of the imbalance exactly (telescoping).

BR-0 without a pool: each request goes to a worker as soon as it becomes known (arXiv 2605.06113, pool-bypass form).

A worker's virtual load counts what is bound to it and has not started. Among the workers that hold fewer than
B + overbooking requests, running and queued, the request goes to the one of largest F, with margins under the largest
virtual load of all. Where all are at that cap it is held, and all behind it.

For one request F does not fall as the margin grows, so the lightest of these workers always has the largest F: with
ties by load and no cap the rule is jsq-load. With ties by number all workers whose margin fits the request tie, and
the first of them takes it.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.state import Room, Shown, Waiting


@kernel
def f_score(G: int, delta: int, margin: int) -> int:
    """Return F in tokens for a batch of `delta` tokens on a worker with this margin."""
    overflow = delta - margin
    if overflow <= 0:
        return delta
    return delta - G * overflow


@kernel
def bind_bypassing(parameters: Record, slots_per_worker: int, size: int, shown: Shown) -> int:
    """Return the worker to which a request of `size` tokens is bound, or -1 where all are at the cap."""
    load, running, queued, queued_tokens, _ = shown
    G = load.size
    overbooking = parameters.overbooking
    virtual_load = np.empty(G, np.int64)
    room = np.empty(G, np.int64)
    for g in range(G):
        virtual_load[g] = load[g] + queued_tokens[g]
        room[g] = 1 if overbooking < 0 else slots_per_worker + overbooking - running[g] - queued[g]
    return _largest_f(parameters.ties_by_number, size, virtual_load, room)


@kernel
def place_bypassing(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Send each request in turn, in order of revelation, to a worker with a free slot; returns positions filled.

    This is the rule in pooled form, for single decisions: nothing queues at a worker, so there is nothing to overbook.
    """
    load, free, pool = room.load, room.free, waiting.pool
    reach = min(free.sum(), pool.size)
    for position in range(reach):
        size = waiting.prompt[pool[position]]
        w = _largest_f(parameters.ties_by_number, size, load, free)
        choice[position] = w
        load[w] += size
        free[w] -= 1
    return reach


@kernel
def _largest_f(ties_by_number: int, size: int, load: Ints, room: Ints) -> int:
    """Worker with room and the largest F for this size; ties: lighter (unless by number), then lower number; or -1.

    Parameters
    ----------
    ties_by_number
        1: equal F goes to the lower number.
    size
        Tokens of the request.
    load, room
        int64 (G,), tokens, and whether there is room (> 0).
    """
    G = load.size
    envelope = 0
    for g in range(G):
        envelope = max(envelope, load[g])
    best = -1
    best_score = 0
    for g in range(G):
        if room[g] <= 0:
            continue
        score = f_score(G, size, envelope - load[g])
        lighter = not ties_by_number and best >= 0 and load[g] < load[best]
        if best < 0 or score > best_score or (score == best_score and lighter):
            best, best_score = g, score
    return best
