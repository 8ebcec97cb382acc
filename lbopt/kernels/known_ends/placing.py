"""First assignments: the rules of `lbopt.solvers.elementary`, compiled; and the costs that all assignments share.

Arrays are copied by plain loops: Numba takes a tenth of a second to compile each assignment to a slice.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.state import INFINITY, Draft, Window


@kernel
def copy_row(target: Ints, source: Ints) -> None:
    """Set target to source, both of one dimension."""
    for i in range(target.size):
        target[i] = source[i]


@kernel
def copy_rows(target: Ints, source: Ints) -> None:
    """Set target to source, both of two dimensions."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]


@kernel
def fill_row(target: Ints, number: int) -> None:
    """Set all of a row to one number."""
    for i in range(target.size):
        target[i] = number


@kernel
def fill_rows(target: Ints, number: int) -> None:
    """Set all of a table to one number."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = number


@kernel
def mix_row(target: Floats, source: Floats, share: float) -> None:
    """Let target take a share of source."""
    for i in range(target.size):
        target[i] += share * (source[i] - target[i])


@kernel
def mix_rows(target: Floats, source: Floats, share: float) -> None:
    """Let target take a share of source, both of two dimensions."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] += share * (source[i, j] - target[i, j])


@kernel
def cost_of(window: Window, loads: Ints) -> int:
    """Return the cost in tokens of these loads (W, T), which are shifted like `peak`."""
    W, T = loads.shape
    peaks, sums = 0, 0
    for h in range(T):
        top = 0
        for w in range(W):
            top = max(top, loads[w, h])
            sums += loads[w, h] - window.peak[w, h]
        peaks += top
    return window.constant + window.workers * peaks - sums


@kernel
def add_loads(window: Window, draft: Draft) -> None:
    """Set draft.loads and draft.left from draft.pattern."""
    copy_row(draft.left, window.n)
    W, T = window.peak.shape
    for w in range(W):
        for h in range(T):
            draft.loads[w, h] = window.peak[w, h]
        for q in range(window.slots[w]):
            k = draft.pattern[w, q]
            draft.left[k] -= 1
            for h in range(T):
                draft.loads[w, h] += window.v[k, h]


@kernel
def offer(progress: Record, answer: Ints, pattern: Ints, cost: int) -> None:
    """Keep the pattern, (W, Q) classes, where its cost is below the best one."""
    if cost < progress.cost:
        progress.cost = cost
        copy_rows(answer, pattern)


@kernel
def place_in_order(window: Window, order: Ints, count: int, by_envelope: int, filler: int, draft: Draft) -> None:
    """Place order[:count] (classes) one after the other where it hurts least; `filler` takes the slots left over.

    By load: the worker with the least load over the window. By envelope: the one that raises the envelopes least.

    Parameters
    ----------
    order, count
        (N,) int64, classes, and how many of them are placed.
    by_envelope, filler
        1 or 0; a class.
    """
    pattern, loads, tops = draft.pattern, draft.loads, draft.tops
    W, T = window.peak.shape
    room = np.empty(W, np.int64)
    for w in range(W):
        room[w] = window.slots[w]
        for h in range(T):
            loads[w, h] = window.peak[w, h]
    for h in range(T):
        tops.load[h] = 0
    for i in range(count):
        k = order[i]
        best, least_raise, least_area = -1, INFINITY, INFINITY
        for w in range(W):
            if room[w] == 0:
                continue
            raised, area = 0, 0
            for h in range(T):
                after = loads[w, h] + window.v[k, h]
                area += after
                if by_envelope == 1 and after > tops.load[h]:
                    raised += after - tops.load[h]
            if raised < least_raise or (raised == least_raise and area < least_area):
                best, least_raise, least_area = w, raised, area
        room[best] -= 1
        pattern[best, room[best]] = k
        for h in range(T):
            loads[best, h] += window.v[k, h]
            tops.load[h] = max(tops.load[h], loads[best, h])
    for w in range(W):
        for q in range(room[w]):
            pattern[w, q] = filler
    add_loads(window, draft)
