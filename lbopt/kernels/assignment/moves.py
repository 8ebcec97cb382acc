"""Balanced assignment: points at their cheapest centres, and shortest paths of moves between centres.

Every point at its cheapest centre under given prices, and the total that labels cost.

A forbidden pair is never the cheapest; every point needs one that is not.

Loops that only look for a least value become vector code, so there is one for the cheapest and one for the next.

The cheapest moves from one centre to another, kept as points come and go.

The arc from k to l is as long as the least of costs[i, l] - costs[i, k] over the points at k. Prices do not enter into
this order, so it is worth keeping. Of each pair those points are listed, r at most, whose difference is less than a
bound: the length at which the move would have the reduced length slack[k] at the prices of that day. So points far from
the border between two centres are passed over with one comparison. A point that leaves is dropped only when it comes
to the head of a list, and one that arrives goes into the lists whose bound it undercuts.

A list that is empty says that the arc is no shorter than its bound. If a shortest path should lead over it, the lists
of k are made anew with more slack; likewise before a rise of the price of k uses up half of the slack. That takes one
look at all labels and at the costs of the points at k; as there are n / K of these, both looks take about as long.

Where pairs are forbidden, ways[k, l] counts the points of k that may be at l. Where it is zero the network has no arc
from k to l: its length is INFINITY, and nobody looks for it.

Shortest paths from a node with too much to the next one with too little, and the prices that make them short.

Arc (k, l): the point of k that costs least more at l moves there. Arc (k, pool): k counts one more point as served,
up to its upper bound; arc (pool, k): one fewer, down to its lower bound. With prices under which every point is at its
cheapest centre no arc has a negative reduced length d(k, l) = length + price[l] - price[k], so Dijkstra's method finds
the way; it ends at the first node that lacks something (as in Jonker and Volgenant, Computing 38, 1987), and only the
prices of nodes nearer than that rise, by what they are nearer. The network is dense, so there is no heap: the
least distance is searched among all.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.assignment.costs import (
    AGAIN,
    DONE,
    FORBIDDEN,
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
def label_cheapest(points: Points, price: Ints, upper: Ints, held: Ints, margin: Ints) -> None:
    """Set points.labels, held[k] to the points at k, and margin[p] to what the second cheapest centre is dearer.

    Where centres tie, one with room is taken if there is any. With one centre the margin is INFINITY.

    Parameters
    ----------
    points
        Its labels are written.
    price
        (K,) int64 at least, price of each centre, in units of the costs.
    upper
        (K,) int64, most points.
    held, margin
        (K,) and (n,) int64, written.
    """
    if points.start.size > 0:
        _label_pairs(points, price, upper, held, margin)
        return
    costs, rows, labels = points.costs, points.rows, points.labels
    K = costs.shape[1]
    for k in range(K):
        held[k] = 0
    priced = np.empty(K, dtype=np.int64)
    for p in range(rows.size):
        i, best, second, at = rows[p], INFINITY, INFINITY, 0
        for k in range(K):
            priced[k] = costs[i, k] + price[k]
            best = min(best, priced[k])
        while priced[at] != best:
            at += 1
        priced[at] = INFINITY
        for k in range(K):
            second = min(second, priced[k])
        if second == best and held[at] >= upper[at]:
            for k in range(at + 1, K):
                if held[k] < upper[k] and priced[k] == best:
                    at = k
                    break
        labels[p] = at
        held[at] += 1
        margin[p] = min(INFINITY, second - best)


@kernel
def _label_pairs(points: Points, price: Ints, upper: Ints, held: Ints, margin: Ints) -> None:
    """Do the same where pairs are listed.

    Parameters
    ----------
    points, price, upper, held, margin
        As above.
    """
    start, centre, cost = points.start, points.centre, points.cost
    for k in range(upper.size):
        held[k] = 0
    for p in range(points.rows.size):
        i = points.rows[p]
        best, second, at = INFINITY, INFINITY, -1
        for e in range(start[i], start[i + 1]):
            k = centre[e]
            priced = cost[e] + price[k]
            with_room = at >= 0 and priced == best and held[at] >= upper[at] and held[k] < upper[k]
            if priced < best or with_room:
                second, best, at = best, priced, k
            else:
                second = min(second, priced)
        points.labels[p] = at
        held[at] += 1
        margin[p] = min(INFINITY, second - best)


@kernel
def cost_at(points: Points, i: int, k: int) -> int:
    """Return the cost of row i at centre k, which may be used."""
    if points.start.size == 0:
        return points.costs[i, k]
    e = points.start[i]
    while points.centre[e] != k:
        e += 1
    return points.cost[e]


@kernel
def total_cost(points: Points) -> int:
    """Return the sum of the costs of all points where they are."""
    total = 0
    for p in range(points.rows.size):
        total += cost_at(points, points.rows[p], points.labels[p])
    return total


#: No difference of costs comes near this.
_ABOVE_ALL = 1 << 59


@kernel
def list_first(points: Points, moves: Moves, price: Ints) -> None:
    """Make the lists of all centres in one pass; points whose margin is no less than the slack have nothing to list."""
    labels = points.labels
    K = moves.slack.size
    if moves.ways.size > 0:
        moves.ways[:] = 0
        for p in range(labels.size):
            _count_ways(points, moves, labels[p], p, 1)
    for k in range(K):
        _clear(moves, price, k)
    for p in range(labels.size):
        k = labels[p]
        if moves.margin[p] < moves.slack[k]:
            _list_point(points, moves, k, p)


@kernel
def list_again(points: Points, moves: Moves, price: Ints, k: int) -> None:
    """Make the lists of centre k anew, with twice the slack.

    Parameters
    ----------
    points
        The points of the level.
    moves
        Changed in place.
    price, k
        (K,) int64 at least, price of each centre, in units of the costs; the centre.
    """
    labels = points.labels
    moves.slack[k] = min(2 * moves.slack[k] + 1, UNREACHED)
    _clear(moves, price, k)
    # prices never fall, so the margin of a point shrinks by no more than the price of its centre has risen
    narrow = moves.slack[k] + price[k] - moves.origin[k]
    for p in range(labels.size):
        if labels[p] == k and moves.margin[p] < narrow:
            _list_point(points, moves, k, p)


@kernel
def _clear(moves: Moves, price: Ints, k: int) -> None:
    """Empty the lists of centre k, and set their bounds."""
    first, stop, bound, least = moves.first[k], moves.stop[k], moves.bound[k], moves.least[k]
    slack = moves.slack[k]
    moves.since[k] = price[k]
    for j in range(bound.size):
        first[j] = stop[j] = 0
        bound[j] = price[k] - price[j] + slack
        if bound[j] >= _ABOVE_ALL or (moves.ways.size > 0 and moves.ways[k, j] == 0):
            bound[j] = INFINITY
        moves.nearest[k, j], least[j] = -1, bound[j]
    bound[k], least[k] = -INFINITY, INFINITY  # nothing is listed for staying


@kernel
def _count_ways(points: Points, moves: Moves, k: int, p: int, change: int) -> None:
    """Add `change` to the points of k that may be at each centre, for those where point p may be.

    Parameters
    ----------
    points
        The points of the level.
    moves
        Its ways are changed in place.
    k, p
        The centre and the point.
    change
        1 where it comes, -1 where it leaves.
    """
    i, ways = points.rows[p], moves.ways[k]
    if points.start.size == 0:
        row = points.costs[i]
        for j in range(row.size):
            if row[j] != FORBIDDEN:
                ways[j] += change
    else:
        for e in range(points.start[i], points.start[i + 1]):
            ways[points.centre[e]] += change


@kernel
def _list_point(points: Points, moves: Moves, k: int, p: int) -> None:
    """Put a point at k into the lists whose bounds it undercuts.

    Parameters
    ----------
    points
        The points of the level.
    moves
        Changed in place.
    k, p
        The centre and the point.
    """
    i, bound = points.rows[p], moves.bound[k]
    own = cost_at(points, i, k)
    if points.start.size == 0:
        row = points.costs[i]
        for j in range(row.size):
            if row[j] - own < bound[j]:
                _insert(moves, k, j, row[j] - own, p)
    else:
        for e in range(points.start[i], points.start[i + 1]):
            j = points.centre[e]
            if points.cost[e] - own < bound[j]:
                _insert(moves, k, j, points.cost[e] - own, p)


@kernel
def _insert(moves: Moves, k: int, j: int, difference: int, p: int) -> None:
    """Put a point into the list of a pair, whose bound it undercuts; a full list loses its last point for it.

    Parameters
    ----------
    moves
        Changed in place.
    k, j
        The pair of centres.
    difference, p
        What the move costs, in units of the costs, and the point.
    """
    listed, value = moves.point[k, j], moves.difference[k, j]
    first, stop = moves.first[k, j], moves.stop[k, j]
    if stop == listed.size:
        if first > 0:
            for q in range(first, stop):
                listed[q - first], value[q - first] = listed[q], value[q]
            stop -= first
            first = 0
        else:
            stop -= 1
            moves.bound[k, j] = max(difference, value[stop])
            if difference >= value[stop]:
                return
    at = stop
    while at > first and value[at - 1] > difference:
        listed[at], value[at] = listed[at - 1], value[at - 1]
        at -= 1
    listed[at], value[at] = p, difference
    moves.first[k, j], moves.stop[k, j] = first, stop + 1
    if difference < moves.least[k, j]:
        moves.nearest[k, j], moves.least[k, j] = p, difference


@kernel
def leave(points: Points, moves: Moves, k: int, p: int) -> None:
    """Take note that point p has left centre k; its label has changed already.

    Parameters
    ----------
    points
        The points of the level.
    moves
        Changed in place.
    k, p
        The centre and the point.
    """
    nearest = moves.nearest[k]
    for j in range(nearest.size):
        if nearest[j] != p:
            continue
        at, stop = moves.first[k, j], moves.stop[k, j]
        while at < stop and points.labels[moves.point[k, j, at]] != k:
            at += 1
        moves.first[k, j] = at
        if at < stop:
            nearest[j], moves.least[k, j] = moves.point[k, j, at], moves.difference[k, j, at]
        else:
            nearest[j], moves.least[k, j] = -1, moves.bound[k, j]
    if moves.ways.size > 0:
        _count_ways(points, moves, k, p, -1)
        for j in range(nearest.size):
            if moves.ways[k, j] == 0:
                moves.least[k, j] = INFINITY
                if j != k:
                    moves.bound[k, j] = INFINITY


@kernel
def enter(points: Points, moves: Moves, k: int, p: int) -> None:
    """Take note that point p has come to centre k.

    Parameters
    ----------
    points
        The points of the level.
    moves
        Changed in place.
    k, p
        The centre and the point.
    """
    moves.margin[p] = 0
    if moves.ways.size > 0:
        _count_ways(points, moves, k, p, 1)
    _list_point(points, moves, k, p)


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
