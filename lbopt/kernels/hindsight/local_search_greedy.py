"""Placing requests one after the other with the whole timetable in sight: the greedy rule with foresight.

Step by step, the requests that start in it get workers. What a worker will hold h steps later is known but for the
slots that will have changed hands by then; these are reckoned to hold the mean of the requests that take them, which
the timetable tells: r(h) = (W(k + h) - what is placed) / (slots that are free of placed requests). So the projected
loads of all workers always sum to W. With z_g(h) the projected load of worker g less the mean, a placement costs

    J = sum over points h of weight(h) * (sum_g max(z_g(h), 0)^4)^(1/4),

where the fourth root of fourth powers stands for the maximum: it also sees the worker that is nearly the heaviest. A
point stands for the steps up to the next one, times s^q, with s the share of what runs then that is placed already.
What is still to be placed can mend what is uneven; in the drain, where nothing is left to be placed, points count in
full. Which q is best depends on the run; some are tried.

Requests go to the worker with a free slot where J is least, the largest first; then pairs of them change places, and
single ones move to other free slots, while J falls. A request that starts later never ends an older one, so a slot that
is free in the step where a request starts is free as long as it runs.

The same rule reads a run backwards, from the last end to the first start: there a request comes at its end with its
largest size and gets smaller by a token a step. Read so, the drain comes first, where slots are free, and what is left
for the end are the steps in which most requests start together.

Work: about m (G + m) P for m requests that start together, P points, and the steps of every request.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.stable_order import stable_order


class Growing(NamedTuple):
    """A placement that grows request by request.

    Parameters
    ----------
    start, prompt, output
        int64 (N,), requests in the order in which they come: the step, the tokens in it, and the steps that they stay.
    growth
        Tokens by which a request grows a step: 1, or -1 where the run is read backwards.
    totals, running
        int64 (K + 1,): tokens that all workers hold, and requests that run, in each step; zero beyond the last.
    slots
        B.
    ahead, span
        int64 and float64 (P,): points in steps after the present one, the first of which is 0, and how many steps each
        stands for.
    fading
        q.
    scale
        Tokens that count as one, so that fourth powers stay small.
    worker
        int64 (N,), where requests run; written.
    loads, held
        int64 (K, G): tokens and requests of each worker in each step, of those that are placed; changed in place.
    placed_load, placed_count
        int64 (K,): both of all workers together; changed in place.
    """

    start: Ints
    prompt: Ints
    output: Ints
    growth: int
    totals: Ints
    running: Ints
    slots: int
    ahead: Ints
    span: Floats
    fading: float
    scale: float
    worker: Ints
    loads: Ints
    held: Ints
    placed_load: Ints
    placed_count: Ints


@kernel
def _fourth(z: float) -> float:
    z = max(z, 0.0)
    return z * z * z * z


@kernel
def _cost_of_one(z: Floats, power: Floats, weight: Floats, g: int, more: Floats) -> float:
    """Return J if a worker held more.

    Parameters
    ----------
    z
        float64 (G, P), loads less the mean.
    power
        float64 (P,), sums of the fourth powers of what is above 0.
    weight
        float64 (P,).
    g, more
        The worker, and what it would hold besides, float64 (P,).
    """
    cost = 0.0
    for p in range(weight.size):
        s = power[p] - _fourth(z[g, p]) + _fourth(z[g, p] + more[p])
        cost += weight[p] * np.sqrt(np.sqrt(max(s, 0.0)))
    return cost


@kernel
def _cost_of_exchange(z: Floats, power: Floats, weight: Floats, g: int, h: int, given: Floats, taken: Floats) -> float:
    """Return J if worker g gave one request to worker h and took another one for it.

    Parameters
    ----------
    z
        float64 (G, P), loads less the mean.
    power
        float64 (P,), sums of the fourth powers of what is above 0.
    weight
        float64 (P,).
    g, h
        The workers.
    given, taken
        float64 (P,), what g gives and takes.
    """
    cost = 0.0
    for p in range(weight.size):
        change = taken[p] - given[p]
        a, b = z[g, p], z[h, p]
        s = power[p] - _fourth(a) - _fourth(b) + _fourth(a + change) + _fourth(b - change)
        cost += weight[p] * np.sqrt(np.sqrt(max(s, 0.0)))
    return cost


@kernel
def _add(z: Floats, power: Floats, g: int, more: Floats, sign: float) -> None:
    """Change what a worker holds.

    Parameters
    ----------
    z
        float64 (G, P), loads less the mean; changed in place.
    power
        float64 (P,), sums of the fourth powers of what is above 0; changed in place.
    g, more
        The worker, and what comes to it, float64 (P,).
    sign
        1, or -1 for what leaves it.
    """
    for p in range(power.size):
        before = _fourth(z[g, p])
        z[g, p] += sign * more[p]
        power[p] += _fourth(z[g, p]) - before


@kernel
def _place(size: Floats, order: Ints, z: Floats, weight: Floats, free: Ints, worker: Ints, most: int) -> None:
    """Give each request a worker, so that J is low.

    Parameters
    ----------
    size
        float64 (m, P), what requests add.
    order
        int64 (m,), in which they are placed first.
    z
        float64 (G, P), loads less the mean; changed in place.
    weight
        float64 (P,).
    free
        int64 (G,), free slots; changed in place.
    worker
        int64 (m,), written.
    most
        Exchanges that are tried at most.
    """
    G, P, m = z.shape[0], weight.size, order.size
    power = np.zeros(P)
    for g in range(G):
        for p in range(P):
            power[p] += _fourth(z[g, p])
    for i in order:
        best, chosen = np.inf, -1
        for g in range(G):
            if free[g] > 0:
                cost = _cost_of_one(z, power, weight, g, size[i])
                if cost < best:
                    best, chosen = cost, g
        worker[i] = chosen
        free[chosen] -= 1
        _add(z, power, chosen, size[i], 1.0)
    nothing = np.zeros(P)
    cost = _cost_of_one(z, power, weight, 0, nothing)
    tried, better = 0, True
    while better and tried < most:
        better = False
        for i in range(m):
            for j in range(i + 1, m):
                g, h = worker[i], worker[j]
                if g == h:
                    continue
                tried += 1
                new = _cost_of_exchange(z, power, weight, g, h, size[i], size[j])
                if new < cost * (1 - 1e-9) - 1e-12:
                    _add(z, power, g, size[j] - size[i], 1.0)
                    _add(z, power, h, size[i] - size[j], 1.0)
                    worker[i], worker[j], cost, better = h, g, new, True
            for h in range(G):
                g = worker[i]
                if free[h] == 0 or h == g:
                    continue
                tried += 1
                new = _cost_of_exchange(z, power, weight, g, h, size[i], nothing)
                if new < cost * (1 - 1e-9) - 1e-12:
                    _add(z, power, g, size[i], -1.0)
                    _add(z, power, h, size[i], 1.0)
                    free[g] += 1
                    free[h] -= 1
                    worker[i], cost, better = h, new, True
            if tried >= most:
                break


@kernel
def _project(made: Growing, step: int, first: int, last: int, z: Floats, size: Floats, weight: Floats) -> None:
    """Write what is known ahead when the requests first..last - 1 start.

    Parameters
    ----------
    made
        The placement; its `placed_load` and `placed_count` hold these requests already, its loads do not.
    step
        The step.
    first, last
        The requests that start in it.
    z
        float64 (G, P), projected loads less the mean, without these requests; written.
    size
        float64 (m, P), what each of them adds to a worker beyond what its slot would hold otherwise; written.
    weight
        float64 (P,), of the points; written.
    """
    K, G = made.loads.shape
    for p in range(made.ahead.size):
        h = made.ahead[p]
        k = min(step + h, K)
        if made.totals[k] == 0:
            z[:, p], size[:, p], weight[p] = 0.0, 0.0, 0.0
            continue
        left = G * made.slots - made.placed_count[k]
        refill = 0.0 if left == 0 else (made.totals[k] - made.placed_load[k]) / left / made.scale
        weight[p] = made.span[p] * (made.placed_count[k] / made.running[k]) ** made.fading
        mean = made.totals[k] / G / made.scale
        for g in range(G):
            z[g, p] = made.loads[k, g] / made.scale + (made.slots - made.held[k, g]) * refill - mean
        for i in range(first, last):
            size[i - first, p] = (made.prompt[i] + made.growth * h) / made.scale - refill if h < made.output[i] else 0.0


@kernel
def place_from(made: Growing, begin: int, until: int, most: int) -> int:
    """Place the requests from number `begin` on that start before step `until`, and return how many are placed.

    Parameters
    ----------
    made
        Changed in place.
    begin
        The first that is not placed.
    until
        A step.
    most
        Exchanges that are tried at most in a step.
    """
    G, P, N = made.loads.shape[1], made.ahead.size, made.start.size
    z, weight, free = np.zeros((G, P)), np.zeros(P), np.zeros(G, dtype=np.int64)
    first = begin
    while first < N and made.start[first] < until:
        step, last = made.start[first], first
        while last < N and made.start[last] == step:
            for age in range(made.output[last]):
                made.placed_load[step + age] += made.prompt[last] + made.growth * age
                made.placed_count[step + age] += 1
            last += 1
        size = np.zeros((last - first, P))
        _project(made, step, first, last, z, size, weight)
        for g in range(G):
            free[g] = made.slots - made.held[step, g]
        order = stable_order(-size.sum(axis=1))
        _place(size, order, z, weight, free, made.worker[first:last], most)
        for i in range(first, last):
            g = made.worker[i]
            for age in range(made.output[i]):
                made.loads[step + age, g] += made.prompt[i] + made.growth * age
                made.held[step + age, g] += 1
        first = last
    return first
