"""Gated passes, request by request: who waits how long until the start of the pass that first serves it.

Batch-insensitive service (SBS, section 2): a pass takes `pass_time` whatever it holds; who arrives during a pass waits
for a later one; a pass that starts at t takes, in order of arrival, up to `capacity` of those who came at t or before.
At equal times arrivals come first. Three interfaces:

* `bound`: a request belongs to one instance from its arrival on. An instance starts a pass as soon as it is free and
  somebody waits there, or, back to back, a pass every `pass_time` even with nobody in it.
* `pooled`: all wait together. The instance that has been free the longest takes the head of the queue, at the earliest
  `interval` after the last dispatch (spacing AND ready); interval 0 is the pool without spacing. With `idle_bypass` an
  arrival that finds a free instance is dispatched at once, with all who wait.
* `clocked`: all wait together, and every instance starts a pass each `pass_time`, at its own phase, even with nobody in
  it: frozen phases, and with phases in steps of pass_time / N the tick.

The pass time is one constant, so instances become free in the order in which they were started: a ring holds them.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

RANDOM, ROUND_ROBIN, JSQ = 0, 1, 2


@kernel
def bound(
    code: int,
    arrival: Floats,
    uniforms: Floats,
    phases: Floats,
    pass_time: float,
    capacity: int,
    back_to_back: bool,
    wait: Floats,
) -> int:
    """Write the wait of every request into `wait`; returns the number of passes that serve somebody.

    Parameters
    ----------
    code
        RANDOM, ROUND_ROBIN, or JSQ (fewest requests, waiting or in the running pass; ties: the lowest number).
    arrival
        float64 (n,), ascending.
    uniforms
        float64 (n,) in [0, 1): the instance under RANDOM; else not read.
    phases
        float64 (N,): each instance is busy, with nobody, until then; back to back, its first start.
    wait
        float64 (n,), written.
    """
    n, N = arrival.size, phases.size
    free = phases.copy()
    first, last = np.full(N, -1), np.full(N, -1)
    queued, serving, number = np.zeros(N, np.int64), np.zeros(N, np.int64), np.zeros(N, np.int64)
    following = np.full(n, -1)
    passes = 0
    for i in range(n):
        if code == JSQ:
            w = 0
            fewest = n + 1
            for g in range(N):
                passes += _start_passes(
                    g, arrival[i], arrival, phases, pass_time, capacity, back_to_back,
                    free, first, queued, serving, number, following, wait,
                )  # fmt: skip
                here = queued[g] + (serving[g] if free[g] > arrival[i] else 0)
                if here < fewest:
                    w, fewest = g, here
        else:
            w = i % N if code == ROUND_ROBIN else int(uniforms[i] * N)
            passes += _start_passes(
                w, arrival[i], arrival, phases, pass_time, capacity, back_to_back,
                free, first, queued, serving, number, following, wait,
            )  # fmt: skip
        if queued[w] == 0:
            first[w] = i
        else:
            following[last[w]] = i
        last[w] = i
        queued[w] += 1
    for g in range(N):
        passes += _start_passes(
            g, np.inf, arrival, phases, pass_time, capacity, back_to_back,
            free, first, queued, serving, number, following, wait,
        )  # fmt: skip
    return passes


@kernel
def _start_passes(
    g: int,
    now: float,
    arrival: Floats,
    phases: Floats,
    pass_time: float,
    capacity: int,
    back_to_back: bool,
    free: Floats,
    first: Ints,
    queued: Ints,
    serving: Ints,
    number: Ints,
    following: Ints,
    wait: Floats,
) -> int:
    """Start the passes of instance g that begin before `now` and serve somebody; returns how many.

    Parameters
    ----------
    g, now
        Instance, and the time in s.
    arrival, phases, pass_time, capacity, back_to_back
        As of `bound`.
    free
        float64 (N,), s, when each instance becomes free; changed in place.
    first, queued, serving, number
        int64 (N,), first request that waits, how many wait, how many the last pass took, and the number of the next
        pass; changed in place.
    following
        int64 (n,), the request behind each in its queue.
    wait
        float64 (n,), s, written for those that are served.
    """
    passes = 0
    while queued[g] > 0:
        came = arrival[first[g]]
        start = max(free[g], came)
        k = number[g]
        if back_to_back:
            k = max(k, int(np.ceil((came - phases[g]) / pass_time)))
            while phases[g] + k * pass_time < came:  # rounding may put the quotient one off, either way
                k += 1
            while k > number[g] and phases[g] + (k - 1) * pass_time >= came:
                k -= 1
            start = phases[g] + k * pass_time
        if start >= now:
            break
        taken = 0
        while queued[g] > 0 and taken < capacity and arrival[first[g]] <= start:
            i = first[g]
            wait[i] = start - arrival[i]
            first[g] = following[i]
            queued[g] -= 1
            taken += 1
        serving[g] = taken
        number[g] = k + 1
        free[g] = start + pass_time
        passes += 1
    return passes


@kernel
def pooled(
    arrival: Floats, phases: Floats, pass_time: float, capacity: int, interval: float, idle_bypass: bool, wait: Floats
) -> int:
    """Write the wait of every request into `wait` (n,); returns the number of passes.

    Parameters
    ----------
    arrival
        float64 (n,), s, ascending.
    phases
        float64 (N,), s, ascending and within one pass time of each other: when each instance becomes free.
    pass_time, capacity
        Seconds and most requests of a pass.
    interval
        Least seconds between dispatches.
    idle_bypass
        Whether an arrival that finds a free instance is dispatched at once.
    wait
        float64 (n,), s, written.
    """
    n, N = arrival.size, phases.size
    free = phases.copy()
    ring = 0
    previous = -np.inf
    head = 0  # the first who waits
    unseen = 0  # the first who had not come at the last dispatch
    passes = 0
    while head < n:
        start = max(arrival[head], previous + interval, free[ring])
        if idle_bypass:
            while unseen < n and arrival[unseen] < free[ring]:
                unseen += 1
            if unseen < n:
                start = min(start, arrival[unseen])
        taken = 0
        while head < n and taken < capacity and arrival[head] <= start:
            wait[head] = start - arrival[head]
            head += 1
            taken += 1
        while unseen < n and arrival[unseen] <= start:
            unseen += 1
        previous = start
        free[ring] = start + pass_time
        ring = (ring + 1) % N
        passes += 1
    return passes


@kernel
def clocked(arrival: Floats, phases: Floats, pass_time: float, capacity: int, wait: Floats) -> int:
    """Write the wait of every request into `wait` (n,); returns the number of passes that serve somebody.

    Parameters
    ----------
    arrival
        float64 (n,), s, ascending.
    phases
        float64 (N,), s, ascending, below `pass_time`: the first start of each instance.
    pass_time, capacity
        Seconds and most requests of a pass.
    wait
        float64 (n,), s, written.
    """
    n, N = arrival.size, phases.size
    head = 0
    number = 0
    passes = 0
    while head < n:
        start = phases[number % N] + (number // N) * pass_time
        taken = 0
        while head < n and taken < capacity and arrival[head] <= start:
            wait[head] = start - arrival[head]
            head += 1
            taken += 1
        if taken > 0:
            passes += 1
        number += 1
    return passes
