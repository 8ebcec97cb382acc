"""Gated passes, request by request: who waits how long until the start of the pass that first serves it.

Batch-insensitive service (SBS, section 2): a pass takes `pass_time` whatever it holds; who arrives during a pass waits
for a later one; a pass that starts at t takes, in order of arrival, up to `capacity` of those who came at t or before.
At equal times arrivals come first. Three interfaces:

* `bound`: a request belongs to one instance from its arrival on. An instance starts a pass as soon as it is free and
  a request waits there, or, back to back, a pass every `pass_time`, even an empty one.
* `pooled`: all wait together. The instance that has been free the longest takes the head of the queue, at the earliest
  `interval` after the last dispatch (spacing AND ready); interval 0 is the pool without spacing. With `idle_bypass` an
  arrival that finds a free instance is dispatched at once, with all who wait.
* `clocked`: all wait together, and every instance starts a pass each `pass_time`, at its own phase, even an empty
  one: frozen phases, and with phases in steps of pass_time / N the tick.

The pass time is one constant, so instances become free in the order in which they were started: a ring holds them.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.compile import kernel

RANDOM, ROUND_ROBIN, JSQ = 0, 1, 2


#: How passes are made. `back_to_back`: 1 where an instance starts one every pass time, even an empty one.
PASSES = np.dtype([("time", np.float64), ("capacity", np.int64), ("back_to_back", np.int64)])

#: An instance that requests are bound to.
INSTANCE = np.dtype(
    [
        ("phase", np.float64),  # it is busy, without a request, until then; back to back, its first start
        ("free", np.float64),  # when it becomes free
        ("first", np.int64),  # request that waits
        ("last", np.int64),
        ("queued", np.int64),  # requests that wait
        ("serving", np.int64),  # that the last pass took
        ("number", np.int64),  # of the next pass
    ],
    align=True,
)


@kernel
def bound(code: int, arrival: Floats, uniforms: Floats, rules: Record, of: Records, wait: Floats) -> int:
    """Write the wait of every request into `wait`; returns the number of passes that serve a request.

    Parameters
    ----------
    code
        RANDOM, ROUND_ROBIN, or JSQ (fewest requests, waiting or in the running pass; ties: the lowest number).
    arrival
        float64 (n,), ascending.
    uniforms
        float64 (n,) in [0, 1): the instance under RANDOM; else not read.
    of
        INSTANCE (N,), of which the phase is given; changed in place.
    wait
        float64 (n,), written.
    """
    n, N = arrival.size, of.size
    for g in range(N):
        of[g].free = of[g].phase
    following = np.full(n, -1)
    passes = 0
    for i in range(n):
        if code == JSQ:
            w = 0
            fewest = n + 1
            for g in range(N):
                passes += _start_passes(of[g], arrival[i], arrival, rules, following, wait)
                here = of[g].queued + (of[g].serving if of[g].free > arrival[i] else 0)
                if here < fewest:
                    w, fewest = g, here
        else:
            w = i % N if code == ROUND_ROBIN else int(uniforms[i] * N)
            passes += _start_passes(of[w], arrival[i], arrival, rules, following, wait)
        one = of[w]
        if one.queued == 0:
            one.first = i
        else:
            following[one.last] = i
        one.last = i
        one.queued += 1
    for g in range(N):
        passes += _start_passes(of[g], np.inf, arrival, rules, following, wait)
    return passes


@kernel
def _start_passes(one: Record, now: float, arrival: Floats, rules: Record, following: Ints, wait: Floats) -> int:
    """Start the passes of an instance that begin before `now` and serve a request; returns how many.

    Parameters
    ----------
    one
        INSTANCE; changed in place.
    following
        int64 (n,), the request behind each in its queue.
    wait
        float64 (n,), s, written for those that are served.
    """
    passes = 0
    while one.queued > 0:
        came = arrival[one.first]
        start = max(one.free, came)
        k = one.number
        if rules.back_to_back == 1:
            k = max(k, int(np.ceil((came - one.phase) / rules.time)))
            while one.phase + k * rules.time < came:  # rounding may put the quotient one off, either way
                k += 1
            while k > one.number and one.phase + (k - 1) * rules.time >= came:
                k -= 1
            start = one.phase + k * rules.time
        if start >= now:
            break
        taken = 0
        while one.queued > 0 and taken < rules.capacity and arrival[one.first] <= start:
            i = one.first
            wait[i] = start - arrival[i]
            one.first = following[i]
            one.queued -= 1
            taken += 1
        one.serving = taken
        one.number = k + 1
        one.free = start + rules.time
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
    """Write the wait of every request into `wait` (n,); returns the number of passes that serve a request.

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
