"""Balanced assignment by loops: all assignments of a few points, and the textbook's flow along cheapest paths.

The flow follows Bellman's and Ford's paths through all points, centres, a source and a sink, one unit at a time, with
no price and no list anywhere; lower bounds are arcs that pay for being used. A cost of None forbids a pair.
"""

from __future__ import annotations

from itertools import product


def cheapest_by_trying(costs, capacity, lower=None):
    """Return the least total of all assignments that keep the bounds, None if none does."""
    centres = len(capacity)
    lower = lower or [0] * centres
    best = None
    for labels in product(range(centres), repeat=len(costs)):
        counts = [labels.count(k) for k in range(centres)]
        paid = [row[k] for row, k in zip(costs, labels, strict=True)]
        if None not in paid and all(lower[k] <= counts[k] <= capacity[k] for k in range(centres)):
            total = sum(paid)
            best = total if best is None else min(best, total)
    return best


def cheapest_by_flow(costs, capacity, lower=None):
    """Return the same by successive shortest paths, whole numbers only; None where a unit finds no way."""
    points, centres = len(costs), len(capacity)
    lower = lower or [0] * centres
    reward = 1 + 2 * sum(max((abs(cost) for cost in row if cost is not None), default=0) for row in costs)
    source, sink = points + centres, points + centres + 1
    arcs = []  # from, to, room, cost; each is followed by its reverse
    for i in range(points):
        _add(arcs, source, i, 1, 0)
        for k in range(centres):
            if costs[i][k] is not None:
                _add(arcs, i, points + k, 1, costs[i][k])
    for k in range(centres):
        _add(arcs, points + k, sink, lower[k], -reward)
        _add(arcs, points + k, sink, capacity[k] - lower[k], 0)
    total = 0
    for _ in range(points):
        one = _one_unit(arcs, source, sink)
        if one is None:
            return None
        total += one
    if any(arcs[2 * e][2] for e in range(len(arcs) // 2) if arcs[2 * e][3] == -reward and arcs[2 * e][1] == sink):
        return None  # a lower bound is not reached
    return total + reward * sum(lower)


def _add(arcs, tail, head, room, cost):
    arcs.append([tail, head, room, cost])
    arcs.append([head, tail, 0, -cost])


def _one_unit(arcs, source, sink):
    nodes = sink + 1
    distance, last = [None] * nodes, [None] * nodes
    distance[source] = 0
    changed = True
    while changed:
        changed = False
        for number, (tail, head, room, cost) in enumerate(arcs):
            if room > 0 and distance[tail] is not None:
                length = distance[tail] + cost
                if distance[head] is None or length < distance[head]:
                    distance[head], last[head] = length, number
                    changed = True
    if distance[sink] is None:
        return None
    at = sink
    while at != source:
        arcs[last[at]][2] -= 1
        arcs[last[at] ^ 1][2] += 1
        at = arcs[last[at]][0]
    return distance[sink]
