"""Every point at its cheapest centre under given prices, and the total that labels cost.

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
def total_cost(points: Points) -> int:
    """Return the sum of the costs of all points where they are."""
    total = 0
    for p in range(points.rows.size):
        total += points.costs[points.rows[p], points.labels[p]]
    return total
