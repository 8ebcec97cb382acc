"""Requests that have waited too long go first: what bounds the wait of rules that choose which requests start."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.max_min import lightest_open
from lbopt.kernels.routing.state import Room, Waiting


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
