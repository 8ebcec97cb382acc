"""Assignments from the solution of a linear program: the largest values first, the rest near what is missing."""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.copying import copy_row
from lbopt.kernels.known_ends.placing import add_loads
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.state import INFINITY, Draft, Program, Window


@kernel
def round_solution(window: Window, program: Program, draft: Draft, rest: Ints, deadline: int) -> int:
    """Make an assignment of the program's values, the largest ones first, and polish it; return its cost or INFINITY.

    Parameters
    ----------
    window, program
        The decision and its solved program.
    draft
        Set in place.
    rest
        (T,) int64, scratch.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    W, K = window.slots.size, window.n.size
    X = program.klass.size
    largest, below = 1e300, 0
    room = np.empty(W, np.int64)
    copy_row(room, window.slots)
    copy_row(draft.left, window.n)
    while True:
        x, amount = -1, 1e-6
        for other in range(X):  # the next one in descending order, ties in the order of columns
            value = program.value[other]
            if value > amount and (value < largest or (value == largest and other > below)):
                x, amount = other, value
        if x < 0:
            break
        largest, below = amount, x
        k, w = program.klass[x], program.worker[x]
        for _ in range(max(1, int(min(amount, float(window.slots[w])) + 0.5))):
            if room[w] > 0 and draft.left[k] > 0:
                room[w] -= 1
                draft.left[k] -= 1
                draft.pattern[w, room[w]] = k
    _place_owed(window, draft, room)
    k = 0
    for w in range(W):
        while room[w] > 0:
            best, near = -1, INFINITY
            goal = 0.0
            for h in range(window.v.shape[1]):
                goal += program.value[X + h] - program.start[w, h]
            for q in range(room[w], window.slots[w]):
                goal -= program.weight[draft.pattern[w, q]]
            for k in range(K):
                if draft.left[k] > 0:
                    away = int(abs(goal / room[w] - program.weight[k]) * program.numbers.unit)
                    if away < near:
                        best, near = k, away
            if best < 0:
                return INFINITY
            room[w] -= 1
            draft.left[best] -= 1
            draft.pattern[w, room[w]] = best
    add_loads(window, draft)
    return polish(window, draft, 8, rest, deadline)


@kernel
def _place_owed(window: Window, draft: Draft, room: Ints) -> None:
    """Give the requests that must be admitted and are not yet to workers with room, or in the place of others."""
    for k in range(window.n.size):
        if window.must[k] == 0:
            continue
        while draft.left[k] > 0:
            found, at = -1, -1
            for w in range(room.size):
                if room[w] > 0 and (found < 0 or room[w] > room[found]):
                    found = w
            if found >= 0:
                room[found] -= 1
                at = room[found]
            else:
                for w in range(room.size):
                    for q in range(window.slots[w]):
                        if window.must[draft.pattern[w, q]] == 0:
                            found, at = w, q
                if found < 0:
                    return
                draft.left[draft.pattern[found, at]] += 1
            draft.pattern[found, at] = k
            draft.left[k] -= 1
