"""Pair swaps: the heaviest worker gives a larger request for a smaller one of a lighter worker, until all fit a target.

A worker's requests are kept sorted, so the best swap between two workers is one walk down both lists. With `excess`
what the heavy worker has above the target and `room` what the light one lacks, a transfer d in [excess, room] settles
the heavy worker; where there is none, the largest transfer d <= min(excess, room) lessens the sum of all excesses, and
no other worker comes to lie above the target: hence the walk ends. A light worker with a free slot may give nothing.

Sizes of real requests are dense near their median: 72 requests a worker have 5,184 differences, so a transfer of the
few tokens needed is nearly always there, and longest-first plus swaps alone reach the mean.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed

SPARE = 2  # free slots of a worker that swaps may fill
PARTNERS = 24  # light workers asked before a transfer that only lessens the excess is accepted


@by_reference
class Held(NamedTuple):
    """The requests of each worker, largest first."""

    sizes: Ints  # (N,)
    held: Ints  # requests, worker after worker
    start: Ints  # (G + 1,) where those of a worker begin
    many: Ints  # (G,) how many they are
    room: Ints  # (G,) and how many it may hold


@kernel
def swap_down(
    slots: Ints, sizes: Ints, order: Ints, target: int, work_limit: int, load: Ints, assignment: Ints, deadline: int
) -> int:
    """Swap until every load is at most `target`, or the heaviest worker finds no swap. Returns work done.

    `order` (N,) lists the requests largest first; `load` (G,) and `assignment` (N,) are changed in place.
    """
    G = load.size
    count = np.zeros(G, np.int64)
    for i in range(order.size):
        count[assignment[i]] += 1
    start = np.zeros(G + 1, np.int64)
    room = np.empty(G, np.int64)  # requests that a worker may hold
    for g in range(G):
        room[g] = min(slots[g], count[g] + SPARE)
        start[g + 1] = start[g] + room[g]
    held = np.empty(start[G], np.int64)  # requests of a worker, largest first
    count[:] = 0
    for r in range(order.size):
        i = order[r]
        g = assignment[i]
        held[start[g] + count[g]] = i
        count[g] += 1

    h = Held(sizes, held, start, count, room)
    work = order.size
    while work < work_limit:
        if passed(deadline):
            return work_limit
        heavy = 0
        light = 0
        for g in range(1, G):
            if load[g] > load[heavy]:
                heavy = g
            if room[g] > 0 and (room[light] == 0 or load[g] < load[light]):
                light = g
        work += G
        if load[heavy] <= target:
            break
        best = 0
        giver = taker = partner = -1
        tried = 0
        for k in range(G):
            g = (light + k) % G
            if load[g] >= target or room[g] == 0:
                continue
            x, y, moved = _best_swap(h, heavy, g, load[heavy] - target, target - load[g])
            work += count[heavy] + count[g]
            if moved >= load[heavy] - target or moved > best:
                best, giver, taker, partner = moved, x, y, g
            tried += 1
            if moved >= load[heavy] - target or (tried >= PARTNERS and best > 0):
                break
        if best == 0:
            break
        out = _take(h, heavy, giver)
        back = -1
        if taker < count[partner]:
            back = _take(h, partner, taker)
            _put(h, heavy, back)
            assignment[back] = heavy
        _put(h, partner, out)
        assignment[out] = partner
        load[heavy] -= best
        load[partner] += best
    return work


@kernel
def _best_swap(h: Held, heavy: int, light: int, excess: int, gap: int) -> tuple[int, int, int]:
    """Ranks (of heavy, of light) and transfer of the best swap; transfer 0 if there is none.

    The target is exactly `excess`; else exactly `gap`, if that is more; else any between; else the largest below both.
    The rank `count[light]` means that nothing is given back.
    """
    sizes, held, start, count, room = h.sizes, h.held, h.start, h.many, h.room
    most = min(excess, gap)
    ends = count[light] + (1 if count[light] < room[light] else 0)
    below = 0
    x_below = y_below = -1
    above = 0
    x_above = y_above = -1
    j = -1  # the last rank of light whose size is at least x - most
    for i in range(count[heavy]):
        x = sizes[held[start[heavy] + i]]
        while j + 1 < ends:
            y = sizes[held[start[light] + j + 1]] if j + 1 < count[light] else 0
            if y < x - most:
                break
            j += 1
        if j >= 0:
            y = sizes[held[start[light] + j]] if j < count[light] else 0
            if x - y > below:
                below, x_below, y_below = x - y, i, j
                if below == excess:
                    return x_below, y_below, below
        if j + 1 < ends and above < gap:
            y = sizes[held[start[light] + j + 1]] if j + 1 < count[light] else 0
            if excess <= x - y <= gap and (above == 0 or x - y == gap):
                above, x_above, y_above = x - y, i, j + 1
    if above > 0:
        return x_above, y_above, above
    return x_below, y_below, below


@kernel
def _take(h: Held, g: int, rank: int) -> int:
    """Remove and return the request of that rank."""
    own = h.held[h.start[g] :]
    i = own[rank]
    h.many[g] -= 1
    for r in range(rank, h.many[g]):
        own[r] = own[r + 1]
    return i


@kernel
def _put(h: Held, g: int, i: int) -> None:
    """Insert a request among those of worker g, largest first."""
    r, own = h.many[g], h.held[h.start[g] :]
    while r > 0 and h.sizes[own[r - 1]] < h.sizes[i]:
        own[r] = own[r - 1]
        r -= 1
    own[r] = i
    h.many[g] += 1
