"""Backfill from its definition, on lists: the oldest that fit into a pass, then who is short enough for the rest."""

import math

LOOKED = 256  # of the queue behind the batch


def passes(tokens, free, chunk):
    """How many passes a prompt needs on a unit of which so much is free in the next one."""
    return 1 if tokens <= free else 1 + math.ceil((tokens - free) / chunk)


def backfill(load, length, cost, chunk, split):
    """Return the unit of each request or None; `cost[k][d]` is what request k, the oldest first, costs on unit d."""
    load, unit, units = list(load), [None] * len(length), range(len(load))
    least = [min(cost[k][d] for d in units) for k in range(len(length))]

    def put(k, parts):
        d = load.index(min(load))
        free = chunk - load[d]
        if free > 0 and (parts or passes(cost[k][d], free, chunk) <= passes(cost[k][d], chunk, chunk)):
            unit[k] = d
            load[d] += cost[k][d]

    room = sum(max(0, chunk - one) for one in load)
    batch = 0
    while batch < len(length) and sum(least[:batch]) < room and (batch == 0 or sum(least[: batch + 1]) <= room):
        batch += 1
    for k in sorted(range(batch), key=lambda k: -length[k]):
        put(k, False)
    for k in range(batch, min(len(length), batch + LOOKED)):
        put(k, False)
    if sum(least[k] for k, d in enumerate(unit) if d is None) > split * len(load) * chunk:
        for k in [k for k, d in enumerate(unit) if d is None]:
            put(k, True)
    return unit
