"""The best placement of chains of requests, by trying all workers for each: depth first, with a bound at every node.

At a node some chains have workers. No placement below it has less in a window than the largest token sum of a worker,
and, once workers have no slot left there, than the mean of what the others have to take. What windows have at least
adds up to the bound of the node. Workers without a chain are alike.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time

#: When to stop, as `out_of_time` reads it.
LIMITS = integers("deadline", "expired")

#: Nodes between two looks at the clock.
_NODES = 1024


class Pieces(NamedTuple):
    """Chains in the order in which they get their workers.

    Parameters
    ----------
    tokens
        int64 (n, C), what each shows in each window; the same chains run in all steps of a window.
    first, last
        int64 (n,), its first window, and the one after its last.
    floors
        int64 (C,), what the barriers of each window are at least.
    workers, slots
        G and B.
    """

    tokens: Ints
    first: Ints
    last: Ints
    floors: Ints
    workers: int
    slots: int


class Fleet(NamedTuple):
    """Who has what in each window at a node.

    Parameters
    ----------
    loads, held
        int64 (G, C): tokens and chains of each worker.
    ready, left
        int64 (C,): how many workers have a slot left, and the tokens that these have and get.
    """

    loads: Ints
    held: Ints
    ready: Ints
    left: Ints


@kernel
def _level(pieces: Pieces, fleet: Fleet, i: int, g: int, c: int) -> int:
    """Return what some worker has at least in window c once chain i is on worker g."""
    load = fleet.loads[g, c] + pieces.tokens[i, c]
    others = fleet.ready[c] - 1
    if fleet.held[g, c] < pieces.slots - 1 or others == 0:
        return load
    return max(load, -((load - fleet.left[c]) // others))


@kernel
def _sum_with(pieces: Pieces, fleet: Fleet, peaks: Ints, together: int, i: int, g: int) -> int:
    """Return what the windows come to if chain i goes to worker g; -1 where that one has no slot.

    `peaks` (C,) are what they had at least before, `together` the sum.
    """
    for c in range(pieces.first[i], pieces.last[i]):
        if fleet.held[g, c] == pieces.slots:
            return -1
        together += max(0, _level(pieces, fleet, i, g, c) - peaks[c])
    return together


@kernel
def _put(pieces: Pieces, fleet: Fleet, i: int, g: int) -> None:
    for c in range(pieces.first[i], pieces.last[i]):
        fleet.loads[g, c] += pieces.tokens[i, c]
        fleet.held[g, c] += 1
        if fleet.held[g, c] == pieces.slots:
            fleet.ready[c] -= 1
            fleet.left[c] -= fleet.loads[g, c]


@kernel
def _take_back(pieces: Pieces, fleet: Fleet, i: int, g: int) -> None:
    for c in range(pieces.first[i], pieces.last[i]):
        if fleet.held[g, c] == pieces.slots:
            fleet.ready[c] += 1
            fleet.left[c] += fleet.loads[g, c]
        fleet.loads[g, c] -= pieces.tokens[i, c]
        fleet.held[g, c] -= 1


@kernel
def try_all(pieces: Pieces, most: int, limits: Record) -> tuple[int, Ints]:
    """Return the least sum of the windows' largest token sums, and the worker of each chain; `most` and -1 for no less.

    Where `limits.expired` is set, not all was tried.
    """
    G, (n, C) = pieces.workers, pieces.tokens.shape
    fleet = Fleet(
        np.zeros((G, C), np.int64), np.zeros((G, C), np.int64), np.full(C, G, np.int64), pieces.tokens.sum(axis=0)
    )
    # Row i of these is what holds before chain i has its worker.
    peaks, sums, used = np.zeros((n + 1, C), np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    peaks[0], sums[0] = pieces.floors, pieces.floors.sum()
    chosen, best = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    i, looks = 0, 0
    while i >= 0:
        looks += 1
        if looks % _NODES == 0 and out_of_time(limits):
            break
        g, together = chosen[i], most
        if g >= 0:
            _take_back(pieces, fleet, i, g)
        while together >= most and g < min(used[i], G - 1):
            g += 1
            found = _sum_with(pieces, fleet, peaks[i], sums[i], i, g)
            together = most if found < 0 else found
        if together >= most:
            chosen[i] = -1
            i -= 1
            continue
        chosen[i] = g
        peaks[i + 1], sums[i + 1], used[i + 1] = peaks[i], together, max(used[i], g + 1)
        for c in range(pieces.first[i], pieces.last[i]):
            peaks[i + 1, c] = max(peaks[i, c], _level(pieces, fleet, i, g, c))
        _put(pieces, fleet, i, g)
        if i == n - 1:
            most = together
            best[:] = chosen
        else:
            i += 1
    return most, best
