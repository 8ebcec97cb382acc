"""Placing requests one after the other with the whole timetable in sight: a beam of placements, best first.

Step by step, the requests that start in it get workers. What a worker will hold h steps later is known but for the
slots that will have changed hands by then; these are reckoned to hold the mean of the requests that take them, which
the timetable tells: r(h) = (W(k + h) - what is placed) / (slots that are free of placed requests). So the projected
loads of all workers always sum to W. With z_g(h) the projected load of worker g less the mean, a placement costs

    J = sum over points h of weight(h) * (sum_g max(z_g(h), 0)^4)^(1/4),

where the fourth root of fourth powers stands for the maximum: it also sees the worker that is nearly the heaviest.
Requests go to the worker with a free slot where J is least, the largest first; then pairs of them change places, and
single ones move to other free slots, while J falls. A beam of width w keeps w placements: of each it takes the best one
and those that are one exchange away, and goes on with the w that have least barriers so far plus J. A beam of
width 1 is the greedy rule with foresight. A request that starts later never ends an older one, so a slot that
is free in the step where a request starts is free as long as it runs.

Work: N m P evaluations of a point for m requests that start together, P points; a beam copies w rings of R x G in a
step, R the longest output. The source of the projection is lbopt's; beams are those of Lowerre (1976, HARPY).
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

#: Placements one exchange away that a placement of the beam may be followed by, beside its best one.
NEIGHBOURS = 8


class Requests(NamedTuple):
    """The timetable, with what is known of all steps.

    Parameters
    ----------
    start, prompt, output
        int64 (N,), in the order of the starts.
    totals, running
        int64 (K + R + 1,): tokens that all workers hold, and requests that run, in each step; zero beyond the last.
    slots
        B.
    """

    start: Ints
    prompt: Ints
    output: Ints
    totals: Ints
    running: Ints
    slots: int


class Points(NamedTuple):
    """Where a placement is looked at.

    Parameters
    ----------
    ahead
        int64 (P,), steps after the present one; the first is 0.
    weight
        float64 (P,).
    scale
        Tokens that count as one, so that fourth powers stay small.
    """

    ahead: Ints
    weight: Floats
    scale: float


class Beam(NamedTuple):
    """Placements that are followed side by side, all changed in place.

    Parameters
    ----------
    loads, held
        int64 (2, w, R, G): tokens and requests that placed requests show in step k, in row k mod R; two halves, of
        which one is read and the other written.
    past
        int64 (2, w), sum of the barriers so far.
    placed_load, placed_count
        int64 (K + R + 1,), tokens and requests of those that are placed, the same in every placement.
    parent
        int16 (K, w), the placement that each was made of in that step.
    worker
        int16 (N, w), the worker that each placement gave a request when it started.
    now
        int64 (4,): next step, next request, which half is read, placements that there are.
    """

    loads: Ints
    held: Ints
    past: Ints
    placed_load: Ints
    placed_count: Ints
    parent: Ints
    worker: Ints
    now: Ints


@kernel
def _fourth(z: float) -> float:
    z = max(z, 0.0)
    return z * z * z * z


@kernel
def _cost_of_one(z: Floats, power: Floats, weight: Floats, g: int, more: Floats) -> float:
    """Return J if worker g held `more` besides."""
    cost = 0.0
    for p in range(weight.size):
        s = power[p] - _fourth(z[g, p]) + _fourth(z[g, p] + more[p])
        cost += weight[p] * np.sqrt(np.sqrt(max(s, 0.0)))
    return cost


@kernel
def _cost_of_exchange(z: Floats, power: Floats, weight: Floats, g: int, h: int, given: Floats, taken: Floats) -> float:
    """Return J if worker g gave one request to worker h and took another one for it."""
    cost = 0.0
    for p in range(weight.size):
        change = taken[p] - given[p]
        a, b = z[g, p], z[h, p]
        s = power[p] - _fourth(a) - _fourth(b) + _fourth(a + change) + _fourth(b - change)
        cost += weight[p] * np.sqrt(np.sqrt(max(s, 0.0)))
    return cost


@kernel
def _add(z: Floats, power: Floats, g: int, more: Floats, sign: float) -> None:
    """Change worker g by `more`, once or less once; z and power are changed in place."""
    for p in range(power.size):
        before = _fourth(z[g, p])
        z[g, p] += sign * more[p]
        power[p] += _fourth(z[g, p]) - before


@kernel
def _sizes(requests: Requests, points: Points, refill: Floats, first: int, last: int) -> Floats:
    """Return what each request adds to a worker at each point, beyond what its slot would hold otherwise, (m, P)."""
    size = np.zeros((last - first, points.ahead.size))
    for i in range(first, last):
        for p in range(points.ahead.size):
            h = points.ahead[p]
            if h < requests.output[i]:
                size[i - first, p] = (requests.prompt[i] + h) / points.scale - refill[p]
    return size


@kernel
def _project(requests: Requests, points: Points, beam: Beam, path: int, refill: Floats, z: Floats) -> None:
    """Write the projected loads of a placement less the mean, before the requests of this step, into z, (G, P)."""
    step, half = beam.now[0], beam.now[2]
    R, G = beam.loads.shape[2], beam.loads.shape[3]
    for p in range(points.ahead.size):
        k = step + points.ahead[p]
        if points.ahead[p] >= R or requests.totals[k] == 0:
            z[:, p] = 0.0
            continue
        row = k % R
        mean = requests.totals[k] / G / points.scale
        for g in range(G):
            free = requests.slots - beam.held[half, path, row, g]
            z[g, p] = beam.loads[half, path, row, g] / points.scale + free * refill[p] - mean


@kernel
def _place(size: Floats, order: Ints, z: Floats, weight: Floats, free: Ints, worker: Ints, most: int) -> float:
    """Give each request a worker, so that J is low, and return J.

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
    for p in range(P):  # exact again, whatever the changes have rounded
        power[p] = 0.0
        for g in range(G):
            power[p] += _fourth(z[g, p])
    return _cost_of_one(z, power, weight, 0, nothing)


@kernel
def _neighbours(
    size: Floats, z: Floats, weight: Floats, free: Ints, worker: Ints, costs: Floats, first: Ints, second: Ints
) -> int:
    """Find the exchanges after which J is least, and return how many were found.

    Parameters
    ----------
    size
        float64 (m, P).
    z
        float64 (G, P), loads less the mean, requests of this step placed.
    weight
        float64 (P,).
    free, worker
        int64 (G,) and (m,): free slots, and where requests are placed.
    costs
        float64 (NEIGHBOURS,), J after each exchange, least first; written.
    first, second
        int64 (NEIGHBOURS,): request i, and request j, or -1 - h for worker h to which i alone moves; written.
    """
    G, P, m = z.shape[0], weight.size, worker.size
    power, nothing, found = np.zeros(P), np.zeros(P), 0
    for g in range(G):
        for p in range(P):
            power[p] += _fourth(z[g, p])
    for i in range(m):
        for other in range(i + 1, m + G):
            j = other if other < m else -1 - (other - m)
            h = worker[j] if j >= 0 else -1 - j
            if h == worker[i] or (j < 0 and free[h] == 0):
                continue
            taken = size[j] if j >= 0 else nothing
            cost = _cost_of_exchange(z, power, weight, worker[i], h, size[i], taken)
            if found == NEIGHBOURS and cost >= costs[found - 1]:
                continue
            place = min(found, NEIGHBOURS - 1)
            while place > 0 and costs[place - 1] > cost:
                costs[place], first[place], second[place] = costs[place - 1], first[place - 1], second[place - 1]
                place -= 1
            costs[place], first[place], second[place] = cost, i, j
            found = min(found + 1, NEIGHBOURS)
    return found


@kernel
def advance(requests: Requests, points: Points, beam: Beam, until: int, most: int) -> None:
    """Place the requests that start before step `until`.

    Parameters
    ----------
    requests, points
        The timetable, and where a placement is looked at.
    beam
        Changed in place.
    until
        The step after the last one.
    most
        Exchanges that are tried at most in a step.
    """
    width, R, G = beam.loads.shape[1], beam.loads.shape[2], beam.loads.shape[3]
    P, N = points.ahead.size, requests.start.size
    z, refill, free = np.zeros((width, G, P)), np.zeros(P), np.zeros((width, G), dtype=np.int64)
    costs, first = np.zeros((width, 1 + NEIGHBOURS)), np.zeros((width, 1 + NEIGHBOURS), dtype=np.int64)
    second, found = np.zeros((width, 1 + NEIGHBOURS), dtype=np.int64), np.zeros(width, dtype=np.int64)
    while beam.now[0] < until:
        step, row, half = beam.now[0], beam.now[0] % R, beam.now[2]
        begin = beam.now[1]
        end = begin
        while end < N and requests.start[end] == step:
            end += 1
        m = end - begin
        if m > 0:
            for i in range(begin, end):
                for age in range(requests.output[i]):
                    beam.placed_load[step + age] += requests.prompt[i] + age
                    beam.placed_count[step + age] += 1
            for p in range(P):
                k = step + points.ahead[p]
                left = G * requests.slots - beam.placed_count[k]
                refill[p] = 0.0 if left == 0 else (requests.totals[k] - beam.placed_load[k]) / left / points.scale
            size = _sizes(requests, points, refill, begin, end)
            order = np.argsort(-size.sum(axis=1), kind="mergesort")
            worker = np.zeros((width, m), dtype=np.int64)
            for path in range(beam.now[3]):
                _project(requests, points, beam, path, refill, z[path])
                for g in range(G):
                    free[path, g] = requests.slots - beam.held[half, path, row, g]
                costs[path, 0] = _place(size, order, z[path], points.weight, free[path], worker[path], most)
                first[path, 0], second[path, 0] = -1, -1
                found[path] = 1
                if width > 1:
                    found[path] += _neighbours(
                        size,
                        z[path],
                        points.weight,
                        free[path],
                        worker[path],
                        costs[path, 1:],
                        first[path, 1:],
                        second[path, 1:],
                    )
            _follow(requests, points, beam, worker, costs, first, second, found, begin, end)
        half = beam.now[2]
        for path in range(beam.now[3]):
            beam.past[half, path] += beam.loads[half, path, row].max()
            beam.loads[half, path, row] = 0
            beam.held[half, path, row] = 0
        beam.now[0] += 1
        beam.now[1] = end


@kernel
def _follow(
    requests: Requests,
    points: Points,
    beam: Beam,
    worker: Ints,
    costs: Floats,
    first: Ints,
    second: Ints,
    found: Ints,
    begin: int,
    end: int,
) -> None:
    """Choose the placements that the beam goes on with, and make them.

    Parameters
    ----------
    requests, points
        The timetable, and where placements are looked at.
    beam
        Changed in place.
    worker
        int64 (w, m), the best placement of the requests that start now, for each placement of the past.
    costs, first, second
        (w, 1 + NEIGHBOURS): J and the exchange that leads to it; the first of each has none.
    found
        int64 (w,), how many there are of each.
    begin, end
        The requests that start now.
    """
    step, half = beam.now[0], beam.now[2]
    width, R = beam.loads.shape[1], beam.loads.shape[2]
    taken, last, kept = np.zeros(found.size, dtype=np.int64), -np.inf, 0
    target = half if width == 1 else 1 - half
    while kept < width:
        best, path = np.inf, -1
        for one in range(beam.now[3]):
            if taken[one] < found[one]:
                score = beam.past[half, one] + costs[one, taken[one]] * points.scale
                if score < best:
                    best, path = score, one
        if path < 0:
            break
        place = taken[path]
        taken[path] += 1
        if best <= last + 1e-9 * abs(last):
            continue  # the same loads, in another order of the workers
        last = best
        if width > 1:
            beam.loads[target, kept] = beam.loads[half, path]
            beam.held[target, kept] = beam.held[half, path]
            beam.past[target, kept] = beam.past[half, path]
        beam.parent[step, kept] = path
        for i in range(begin, end):
            g = worker[path, i - begin]
            if place > 0:
                a, b = first[path, place], second[path, place]
                if i - begin == a:
                    g = worker[path, b] if b >= 0 else -1 - b
                elif i - begin == b:
                    g = worker[path, a]
            beam.worker[i, kept] = g
            for age in range(requests.output[i]):
                row = (step + age) % R
                beam.loads[target, kept, row, g] += requests.prompt[i] + age
                beam.held[target, kept, row, g] += 1
        kept += 1
    beam.now[2], beam.now[3] = target, kept


@kernel
def trace_back(requests: Requests, beam: Beam) -> Ints:
    """Return the worker of each request in the placement with least barriers, (N,), once all are placed."""
    half = beam.now[2]
    path = int(np.argmin(beam.past[half, : beam.now[3]]))
    N = requests.start.size
    chosen = np.zeros(N, dtype=np.int64)
    i = N - 1
    while i >= 0:
        step = requests.start[i]
        while i >= 0 and requests.start[i] == step:
            chosen[i] = beam.worker[i, path]
            i -= 1
        path = beam.parent[step, path]
    return chosen
