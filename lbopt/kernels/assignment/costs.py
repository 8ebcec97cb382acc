"""Balanced assignment: its state, and costs as integers.

The state of balanced assignment.

Letters: n points of a level, K centres, r places in a list. Node K of the network is the pool, behind all centres:
`flow[k]` says how many points centre k may count as served, between lower[k] and upper[k], and all flows together are
to be n. A node has an excess: a centre what it holds above its flow, the pool what the flows have above n. Nothing is
left to do when no node has one.

Costs of points at centres as integers, their cheapest centres, and sums of clusters.

Real costs are multiplied by a power of two, which is exact, and rounded to the nearest integer. A power may leave the
range of float64 where the product does not, so it comes as two factors, each near its root.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

ShortInts = NDArray[np.int32]

#: No arc; above every distance.
INFINITY = 1 << 62

#: The cost of a pair that is forbidden. It is no large cost: less any cost or price it is still above `INFINITY`, and
#: what is so long is no arc, is listed nowhere and enters no total.
FORBIDDEN = (1 << 62) + (1 << 60)

#: Above every distance between nodes that are connected, and every price and difference of prices.
UNREACHED = 1 << 60

#: What a search returns where no node that lacks something can be reached, or where it has to be made once more.
NOWHERE, AGAIN = -1, -2

# how `settle` ends
STUCK, OPEN, DONE = -1, 0, 1


@by_reference
class Points(NamedTuple):
    """The points of a level, and where they are; costs as a matrix, or of the pairs that may be used alone.

    Pairs of row i stand at start[i] to start[i + 1], E pairs in all. Where `start` is empty, the matrix holds.
    """

    costs: Ints  # (N, K) of all points, FORBIDDEN = not to be used; (0, K) where pairs are listed
    start: Ints  # (N + 1,) or (0,)
    centre: ShortInts  # (E,) centre of each pair
    cost: Ints  # (E,) what it costs
    rows: Ints  # (n,) row of each point of this level
    labels: ShortInts  # (n,) centre of each


@by_reference
class Centres(NamedTuple):
    """The nodes of the network; all but the two capacities changes while paths are found."""

    lower: Ints  # (K,) fewest points
    upper: Ints  # (K,) most points
    flow: Ints  # (K,)
    excess: Ints  # (K + 1,)
    price: Ints  # (K + 1,)
    distance: (
        Ints  # (K + 1,) from the node that the present path starts at; INFINITY = none yet, UNREACHED = it is final
    )
    before: Ints  # (K + 1,) the node before on the shortest path
    ahead: Ints  # (K + 1,) its price, or twice UNREACHED where the distance is final
    scanned: Ints  # (K + 1,) nodes whose distance is final, in order
    settled: Ints  # (K + 1,) these distances, in this order


@by_reference
class Moves(NamedTuple):
    """For centres k, l the points of k that cost least more at l: sorted lists, some of whose points have left since.

    A list holds every point of k whose difference costs[i, l] - costs[i, k] is less than bound[k, l].
    """

    nearest: ShortInts  # (K, K) the first point of the list that is still there, -1 = none
    least: Ints  # (K, K) its difference; where there is none, the bound
    bound: Ints  # (K, K) INFINITY = every point is listed
    first: ShortInts  # (K, K) where in the list it is
    stop: ShortInts  # (K, K) end of the list
    point: ShortInts  # (K, K, r)
    difference: Ints  # (K, K, r)
    slack: Ints  # (K,) lists are made of moves of less than this reduced length
    since: Ints  # (K,) price of the centre when they were made
    margin: Ints  # (n,) what the second cheapest centre of a point was dearer under the first prices; 0 if it has moved
    origin: Ints  # (K,) those prices
    ways: Ints  # (K, K) how many points of k may be at l: arcs of the network; (0, 0) where every pair may be used


@kernel
def scaled(costs: Floats, factor: float, factor_too: float) -> Ints:
    """Return round(costs * factor * factor_too), halves to even, of a one-dimensional array."""
    out = np.empty(costs.size, dtype=np.int64)
    for i in range(costs.size):
        out[i] = np.int64(np.rint(costs[i] * factor * factor_too))
    return out


@kernel
def count_lost(costs: Floats, integers: Ints) -> int:
    """Return how many costs, (E,), are not zero and have become the integer zero."""
    lost = 0
    for i in range(costs.size):
        lost += int((integers[i] == 0) & (costs[i] != 0.0))  # both sides, so that it becomes vector code
    return lost


@kernel
def keep_cheapest(costs: Ints, price: Ints, centre: ShortInts, cost: Ints, count: Ints) -> None:
    """Write the cheapest allowed centres of each row under prices, cheapest first, and their costs.

    Parameters
    ----------
    costs
        int64 (n, K), FORBIDDEN where a pair must not be used.
    price
        int64 (K,), in units of the costs.
    centre, cost
        int32 and int64 (n, m), written: m centres at most of each row, and what they cost without their prices.
    count
        int64 (n,), written: how many they are.
    """
    most = centre.shape[1]
    for i in range(costs.shape[0]):
        row, near, paid = costs[i], centre[i], cost[i]
        held, last = 0, INFINITY
        for k in range(row.size):
            if row[k] == FORBIDDEN or (held == most and row[k] + price[k] >= last):
                continue
            priced = row[k] + price[k]
            at = held if held < most else most - 1
            while at > 0 and paid[at - 1] + price[near[at - 1]] > priced:
                near[at], paid[at] = near[at - 1], paid[at - 1]
                at -= 1
            near[at], paid[at] = k, row[k]
            held = min(held + 1, most)
            last = paid[held - 1] + price[near[held - 1]]
        count[i] = held


@kernel
def cheaper_elsewhere(costs: Ints, price: Ints, labels: Ints, centre: ShortInts) -> int:
    """Write the cheapest centre of each row that is cheaper than its own, -1 where none is; return how many are.

    Parameters
    ----------
    costs
        int64 (n, K), FORBIDDEN where a pair must not be used.
    price
        int64 (K,), in units of the costs.
    labels
        int64 (n,), where each point is.
    centre
        int32 (n,), written.
    """
    found = 0
    for i in range(costs.shape[0]):
        row = costs[i]
        least, at = row[labels[i]] + price[labels[i]], -1
        for k in range(row.size):
            if row[k] != FORBIDDEN and row[k] + price[k] < least:
                least, at = row[k] + price[k], k
        centre[i] = at
        found += 1 if at >= 0 else 0
    return found


@kernel
def few_products(rows: Floats, across: Floats, out: Floats) -> None:
    """Write the products of rows, (n, d), and centres, `across` (d, K), float64 (n, K): for d of a few dozen at most.

    A row of products stays in the nearest cache; a library that cuts matrices into blocks takes longer to cut.
    """
    for i in range(rows.shape[0]):
        row, written = rows[i], out[i]
        written[:] = 0.0
        for j in range(row.size):
            factor, center = row[j], across[j]
            for k in range(written.size):
                written[k] += factor * center[k]


@kernel
def integer_costs(products: Floats, ahead: Floats, beside: Floats, times: float, factor: float, out: Ints) -> None:
    """Write round(factor * max(ahead[i] + beside[k] - times * products[i, k], 0)), halves to even.

    Parameters
    ----------
    products
        float64 (n, K), of points and centres.
    ahead, beside
        float64 (n,) and (K,).
    times, factor
        A number, and a power of two.
    out
        int64 (n, K), written; the products must lie elsewhere.
    """
    for i in range(products.shape[0]):
        row, written, own = products[i], out[i], ahead[i]
        for k in range(row.size):
            written[k] = np.int64(np.rint(factor * max(own + beside[k] - times * row[k], 0.0)))


@kernel
def move_sums(rows: Floats, before: Ints, labels: Ints, sums: Floats) -> None:
    """Make `sums`, float64 (K, d), the sums of the rows of each cluster, which they are for the labels `before`.

    Only rows that have moved are looked at; -1 is a row that was nowhere.

    Parameters
    ----------
    rows
        float64 (n, d), points.
    before, labels
        (n,) int64, clusters before and now.
    sums
        float64 (K, d), changed in place.
    """
    for i in range(labels.size):
        old, new = before[i], labels[i]
        if old != new:
            row, more = rows[i], sums[new]
            for j in range(row.size):
                more[j] += row[j]
            if old >= 0:
                less = sums[old]
                for j in range(row.size):
                    less[j] -= row[j]


@kernel
def squared_distances(rows: Floats, labels: Ints, centers: Floats, out: Floats) -> None:
    """Write the squared distance of each row to the centre of its cluster, float64 (n,).

    Parameters
    ----------
    rows, centers
        float64 (n, d) and (K, d), points and centres.
    labels
        (n,) int64, cluster of each row.
    out
        float64 (n,), written.
    """
    for i in range(labels.size):
        row, center, total = rows[i], centers[labels[i]], 0.0
        for j in range(row.size):
            total += (row[j] - center[j]) ** 2
        out[i] = total
