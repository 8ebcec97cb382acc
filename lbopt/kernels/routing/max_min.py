"""Largest first, and who has waited too long first of all.

max-min: largest request first, each to the lightest worker with a free slot (BF-IO, appendix A.1.1; LPT).

Over the oldest U of the pool it starves none; over the whole pool it admits the U largest and lets small ones wait.

Requests that have waited too long go first: what bounds the wait of rules that choose which requests start.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.state import Room, Waiting
from lbopt.kernels.stable_order import stable_order


@kernel
def max_min(parameters: Record, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Place the chosen U requests, largest first; returns positions filled."""
    load, free, pool = room.load, room.free, waiting.pool
    U = min(free.sum(), pool.size)
    seen = pool.size if parameters.whole_pool else U
    size = np.empty(seen, np.int64)
    for position in range(seen):
        size[position] = waiting.prompt[pool[position]]
        choice[position] = -1
    order = stable_order(-size)  # stable: the earlier of two equal requests goes first
    for rank in range(U):
        position = order[rank]
        w = lightest_open(load, free)
        choice[position] = w
        load[w] += size[position]
        free[w] -= 1
    return seen


@kernel
def lightest_open(load: Ints, free: Ints) -> int:
    """Worker of least load among those with a free slot (lowest number on ties), or -1."""
    w = -1
    for g in range(load.size):
        if free[g] > 0 and (w < 0 or load[g] < load[w]):
            w = g
    return w


@kernel
def place_overdue(age_bound: int, room: Room, waiting: Waiting, choice: Ints) -> int:
    """Place requests that have waited `age_bound` steps, oldest first; returns how many. Negative = never."""
    load, free, pool = room.load, room.free, waiting.pool
    placed = 0
    if age_bound < 0:
        return placed
    for position in range(pool.size):
        i = pool[position]
        if waiting.step - waiting.reveal_step[i] < age_bound:
            break  # pool order is order of revelation: all later ones are younger
        w = lightest_open(load, free)
        if w < 0:
            break
        choice[position] = w
        load[w] += waiting.prompt[i]
        free[w] -= 1
        placed += 1
    return placed
