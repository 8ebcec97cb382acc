"""Every point at its cheapest centre, under given prices, and the total that labels cost."""

from lbopt.kernels.assignment.terms import Points
from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def label_cheapest(points: Points, price: Ints, upper: Ints, held: Ints) -> None:
    """Set points.labels, and held[k] to the points at k; where centres tie, one with room is taken if there is any."""
    costs, rows, labels = points.costs, points.rows, points.labels
    K = costs.shape[1]
    for k in range(K):
        held[k] = 0
    for p in range(rows.size):
        i = rows[p]
        best, at = costs[i, 0] + price[0], 0
        for k in range(1, K):
            cost = costs[i, k] + price[k]
            if cost < best:
                best, at = cost, k
        if held[at] >= upper[at]:
            for k in range(at + 1, K):
                if held[k] < upper[k] and costs[i, k] + price[k] == best:
                    at = k
                    break
        labels[p] = at
        held[at] += 1


@kernel
def total_cost(points: Points) -> int:
    """Return the sum of the costs of all points where they are."""
    total = 0
    for p in range(points.rows.size):
        total += points.costs[points.rows[p], points.labels[p]]
    return total
