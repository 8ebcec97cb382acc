"""The state of balanced assignment.

Letters: n points of a level, K centres, r places in a list. Node K of the network is the pool, behind all centres:
`flow[k]` says how many points centre k may count as served, between lower[k] and upper[k], and all flows together are
to be n. A node has an excess: a centre what it holds above its flow, the pool what the flows have above n. Nothing is
left to do when no node has one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference

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
