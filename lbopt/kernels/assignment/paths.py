"""Shortest paths from a node with too much to the next one with too little, and the prices that make them short.

Arc (k, l): the point of k that costs least more at l moves there. Arc (k, pool): k counts one more point as served,
up to its upper bound; arc (pool, k): one fewer, down to its lower bound. With prices under which every point is at its
cheapest centre no arc has a negative reduced length d(k, l) = length + price[l] - price[k], so Dijkstra's method finds
the way; it ends at the first node that lacks something (as in Jonker and Volgenant, Computing 38, 1987), and only the
prices of nodes nearer than that rise, by what they are nearer. The network is dense: distances are searched line by line
as they are lowered, without a heap.
"""

from lbopt.kernels.assignment.moves import enter, list_moves, strike
from lbopt.kernels.assignment.terms import DONE, FAR, OPEN, STUCK, UNREACHED, Centres, Moves, Points
from lbopt.kernels.compile import kernel


@kernel
def settle(points: Points, centres: Centres, moves: Moves, limit: int) -> int:
    """Go on for about `limit` steps; DONE where no node has an excess, STUCK where one cannot be carried off."""
    excess = centres.excess
    for source in range(excess.size):
        while excess[source] > 0:
            if limit <= 0:
                return OPEN
            target, scans = _nearest_lack(points, centres, moves, source)
            if target < 0:
                return STUCK
            _carry(points, centres, moves, source, target)
            limit -= (scans + 1) * excess.size
    return DONE


@kernel
def _nearest_lack(points: Points, centres: Centres, moves: Moves, source: int) -> tuple[int, int]:
    """Return the nearest node of negative excess (-1: none can be reached) and the scans made; prices rise."""
    price, distance, before, final = centres.price, centres.distance, centres.before, centres.final
    pool = centres.flow.size
    for k in range(pool + 1):
        distance[k] = FAR
        final[k] = False
    distance[source] = 0
    at, scans = source, 0
    while centres.excess[at] >= 0:
        final[at] = True
        centres.scanned[scans] = at
        scans += 1
        base = distance[at] - price[at]
        nearest, after = FAR, -1
        if at < pool:
            if not moves.known[at]:
                list_moves(points, moves, at)
            least = moves.least[at]
            for k in range(pool):
                if not final[k]:
                    length = base + least[k] + price[k]
                    if length < distance[k]:
                        distance[k] = length
                        before[k] = at
                    if distance[k] < nearest:
                        nearest, after = distance[k], k
            if not final[pool]:
                if centres.flow[at] < centres.upper[at] and base + price[pool] < distance[pool]:
                    distance[pool] = base + price[pool]
                    before[pool] = at
                if distance[pool] < nearest:
                    nearest, after = distance[pool], pool
        else:
            for k in range(pool):
                if not final[k]:
                    if centres.flow[k] > centres.lower[k] and base + price[k] < distance[k]:
                        distance[k] = base + price[k]
                        before[k] = at
                    if distance[k] < nearest:
                        nearest, after = distance[k], k
        if nearest >= UNREACHED:
            return -1, scans
        at = after
    for q in range(scans):
        k = centres.scanned[q]
        price[k] += distance[at] - distance[k]
    return at, scans


@kernel
def _carry(points: Points, centres: Centres, moves: Moves, source: int, target: int) -> None:
    """Carry one unit along the path that was found, from its end back."""
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
            strike(points, moves, last, p)
            enter(points, moves, at, p)
        at = last
    centres.excess[source] -= 1
    centres.excess[target] += 1
