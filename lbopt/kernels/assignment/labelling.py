"""Every point at its cheapest centre under given prices, and the total that labels cost.

A forbidden pair is never the cheapest; every point needs one that is not.

Loops that only look for a least value become vector code, so there is one for the cheapest and one for the next.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.assignment.state import INFINITY, Points
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
    if points.start.size == 0:
        for p in range(points.rows.size):
            total += points.costs[points.rows[p], points.labels[p]]
    else:
        for p in range(points.rows.size):
            total += cost_at(points, points.rows[p], points.labels[p])
    return total
