"""Shortest paths from a node with too much to the next one with too little, and the prices that make them short.

Arc (k, l): the point of k that costs least more at l moves there. Arc (k, pool): k counts one more point as served,
up to its upper bound; arc (pool, k): one fewer, down to its lower bound. With prices under which every point is at its
cheapest centre no arc has a negative reduced length d(k, l) = length + price[l] - price[k], so Dijkstra's method finds
the way; it ends at the first node that lacks something (as in Jonker and Volgenant, Computing 38, 1987), and only the
prices of nodes nearer than that rise, by what they are nearer. The network is dense, so there is no heap: the
least distance is searched among all.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.assignment.moves import enter, leave, list_again
from lbopt.kernels.assignment.state import (
    AGAIN,
    DONE,
    INFINITY,
    NOWHERE,
    OPEN,
    STUCK,
    UNREACHED,
    Centres,
    Moves,
    Points,
)
from lbopt.kernels.compile import kernel


@kernel
def settle(points: Points, centres: Centres, moves: Moves, limit: int) -> int:
    """Go on for about `limit` steps; DONE where no node has an excess, STUCK where one cannot be carried off.

    Parameters
    ----------
    points, centres, moves
        The state; changed in place.
    limit
        Steps, about.
    """
    excess = centres.excess
    for source in range(excess.size):
        while excess[source] > 0:
            if limit <= 0:
                return OPEN
            target, scans = _nearest_lack(points, centres, moves, source)
            limit -= (scans + 1) * excess.size
            if target == NOWHERE:
                return STUCK
            if target != AGAIN:
                _carry(points, centres, moves, source, target)
    return DONE


@kernel
def _nearest_lack(points: Points, centres: Centres, moves: Moves, source: int) -> tuple[int, int]:
    """Return the nearest node of negative excess and the scans made; prices rise.

    Where the way leads over an arc of which only a bound is known, the answer is AGAIN, and it is known better then.

    Parameters
    ----------
    points
        The points of the level.
    centres, moves
        Changed in place.
    source
        The node that the path starts at.
    """
    price, distance, before, ahead = centres.price, centres.distance, centres.before, centres.ahead
    scanned, settled = centres.scanned, centres.settled
    pool = centres.flow.size
    for k in range(pool + 1):
        distance[k] = INFINITY
        ahead[k] = price[k]
    at, reached, scans = source, 0, 0
    while centres.excess[at] >= 0:
        scanned[scans], settled[scans] = at, reached
        scans += 1
        distance[at], ahead[at] = UNREACHED, 2 * UNREACHED  # so that nothing lowers the distance any more
        if at < pool:
            if price[at] - moves.since[at] > moves.slack[at] // 2:
                list_again(points, moves, price, at)
            _scan(moves.least[at], distance, before, ahead, at, reached - price[at])
            if centres.flow[at] < centres.upper[at]:
                _reach(pool, distance, before, ahead, at, reached - price[at])
        else:
            for k in range(pool):
                if centres.flow[k] > centres.lower[k]:
                    _reach(k, distance, before, ahead, at, reached - price[at])
        reached, at = _nearest(distance)
        if reached >= UNREACHED:
            return NOWHERE, scans
        k = before[at]
        if at < pool and k < pool and moves.nearest[k, at] < 0:
            reduced = moves.least[k, at] + price[at] - price[k]
            moves.slack[k] = max(moves.slack[k], min(2 * reduced, UNREACHED))
            list_again(points, moves, price, k)
            return AGAIN, scans
    for q in range(scans):
        price[scanned[q]] += reached - settled[q]
    return at, scans


@kernel
def _scan(least: Ints, distance: Ints, before: Ints, ahead: Ints, at: int, base: int) -> None:
    """Lower the distances of all centres to what they are over `at`.

    A node whose distance is final is so far ahead that nothing is lowered: no comparison is left but one, and the loop
    becomes vector code.

    Parameters
    ----------
    least
        (K,) int64, lengths of the arcs from `at`.
    distance, before
        (K + 1,) int64, lowered in place, and the node before.
    ahead
        (K + 1,) int64, prices, see `Centres`.
    at, base
        The node, and its distance less its price.
    """
    for k in range(least.size):
        length = base + least[k] + ahead[k]
        shorter = length < distance[k]
        distance[k] = length if shorter else distance[k]
        before[k] = at if shorter else before[k]


@kernel
def _reach(k: int, distance: Ints, before: Ints, ahead: Ints, at: int, base: int) -> None:
    """Lower the distance of one node over an arc of length zero.

    Parameters
    ----------
    k, at, base
        The node reached, the one before, and the distance of that less its price.
    distance, before
        (K + 1,) int64, lowered in place, and the node before.
    ahead
        (K + 1,) int64, prices, see `Centres`.
    """
    if base + ahead[k] < distance[k]:
        distance[k] = base + ahead[k]
        before[k] = at


@kernel
def _nearest(distance: Ints) -> tuple[int, int]:
    """Return the least distance and the last node that has it: two loops, since each of them becomes vector code."""
    least = INFINITY
    for k in range(distance.size):
        least = min(least, distance[k])
    at = 0
    for k in range(distance.size):
        at = max(at, k if distance[k] == least else 0)
    return least, at


@kernel
def _carry(points: Points, centres: Centres, moves: Moves, source: int, target: int) -> None:
    """Carry one unit along the path that was found, from its end back.

    Parameters
    ----------
    points, centres, moves
        The state; changed in place.
    source, target
        Both ends of the path.
    """
    pool, at = centres.flow.size, target
    while at != source:
        last = centres.before[at]
        if last == pool:
            centres.flow[at] -= 1
        elif at == pool:
            centres.flow[last] += 1
        else:
            p = moves.nearest[last, at]
            points.labels[p] = at
            leave(points, moves, last, p)
            enter(points, moves, at, p)
        at = last
    centres.excess[source] -= 1
    centres.excess[target] += 1
