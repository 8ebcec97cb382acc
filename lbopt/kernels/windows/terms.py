"""The words of the window search: the decision in its terms, and the state that the search works in.

Every new request outlives the window and follows one profile a(h), so what worker w receives enters its load at every
step by one number: S_w, the total size of the slots[w] requests placed on it. With P[w, h] the load without sizes,

    cost = G * sum_h max_w (P[w, h] + S_w) - T * sum_w S_w + constant,            T = H + 1.

Letters: W open workers (with free slots); T steps of the window; K size classes, ascending; Q the most slots of a
worker; D the requests of a worker that a node may speak of. A box says low[w] <= S_w <= high[w], and which classes the
D largest requests of w may have. Columns of the linear program: the T envelopes, then the W sums, n = T + W. Its rows,
in this order: worker w at step h (w * T + h), closed workers at step h, low sides, high sides, cuts. A row is written
as (something linear) >= (its right side), so that its price is never negative.

The state comes in parts, and kernels take the parts that they need: a call that hands everything over is slow to
compile and costs more than what most of them do.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.by_reference import by_reference

Words = NDArray[np.uint64]

#: Cuts kept at a time.
CUTS = 64

# facts of a window
WORKERS, CONSTANT, SCALE, FORCED = 0, 1, 2, 3

# what is known of a search
COST, BOUND, NODES, WORK, CUT_COUNT, STARTED, VISITED, PIVOTS, HARDEST, PLUNGE, UNSETTLED, RAY = range(12)

# how `advance` ends
STUCK, OPEN, DONE = -1, 0, 1

#: Bound of a node that is closed.
CLOSED = 1 << 62


@by_reference
class Pool(NamedTuple):
    """The waiting requests, and which totals c of them can have, as far as that is known."""

    v: Ints  # (K,) sizes, ascending
    n: Ints  # (K,) requests
    must: Ints  # (K,) how many of them must be admitted
    small: Ints  # (Q + 1,) totals of the smallest requests
    listed: Ints  # all totals that few requests can have, ascending for each number of them
    begin: Ints  # (Q + 2,) where those of c requests begin; they end where those of c + 1 begin
    sums: Words  # (., .) bit t of row c: whether c requests can have the total t; rows that are absent are not known


@by_reference
class Profile(NamedTuple):
    """The loads over the window, and the rows of the linear program."""

    peak: Ints  # (W, T) load without sizes, less the heaviest of all workers at that step
    floor: Ints  # (T,) heaviest closed worker, in the same terms
    worker: Ints  # (rows,) the worker whose sum is in the row, -1 = none or several
    step: Ints  # (rows,) the step whose envelope is in the row, -1 = none


@by_reference
class Window(NamedTuple):
    """A decision over a window, every slot of which is filled by exactly one request.

    facts: workers G; constant of the cost; scale of the prices in a proof; requests that must be admitted.
    """

    pool: Pool
    profile: Profile
    slots: Ints  # (W,)
    low: Ints  # (W,) total of the smallest requests that fill it
    high: Ints  # (W,) total of the largest
    order: Ints  # (W,) workers in the order of filling: fewest slots first
    facts: Ints  # (4,)


@by_reference
class Nodes(NamedTuple):
    """The open nodes."""

    bounds: Ints  # (nodes,) lower bound of each, tokens
    low: Ints  # (nodes, W) its box
    high: Ints  # (nodes, W)
    first: Ints  # (nodes, W, D) least class of the largest, second largest, ... request of a worker
    last: Ints  # (nodes, W, D) and the greatest


@by_reference
class Box(NamedTuple):
    """The node at hand."""

    low: Ints  # (W,)
    high: Ints  # (W,)
    first: Ints  # (W, D)
    last: Ints  # (W, D)
    fixed: Ints  # (W,) how many of its requests are known: the largest ones
    held: Ints  # (W,) their total
    least: Ints  # (W,) classes that the next one may have
    most: Ints  # (W,)
    avail: Ints  # (K,) requests that are not bound to a worker


@by_reference
class Cuts(NamedTuple):
    """What several workers hold together."""

    inside: Ints  # (CUTS, W) workers of each cut
    sense: Ints  # (CUTS,) +1: at most `limit` tokens together; -1: at least; 0: not in use
    limit: Ints  # (CUTS,) at the node at hand


@by_reference
class Program(NamedTuple):
    """The linear program of the node at hand, and its basis."""

    right: Ints  # (rows,) right side of each row
    basis: Ints  # (n,) row at each position of the basis
    edge: Floats  # (n, n) direction along which only the slack of that row grows
    price: Floats  # (n,) its dual value
    point: Floats  # (n,) envelopes, then sums
    rate: Floats  # (n,) growth of the entering row along each edge
    scaled: Ints  # (n + 1,) prices in 1/scale, for the exact bound


@by_reference
class Draft(NamedTuple):
    """An assignment in the making."""

    goal: Ints  # (W,) sums of the point, whole tokens
    pattern: Ints  # (W, Q) classes
    left: Ints  # (K,) requests left by it
    placed: Ints  # (W,) its sums
    owed: Ints  # (W * Q,) classes of the forced requests that are not known yet
    owner: Ints  # (W * Q,) who gets them: position in the order of filling, from its end
    room: Ints  # (W,) slots that are still empty
    rest: Ints  # (W,) what is missing to the goal
    tops: Ints  # (T, 5) heaviest load and its worker, second load and its worker, third load


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    known: Ints  # (12,) best cost, proved bound, open nodes, work done, cuts, whether it has begun, nodes visited,
    # pivots, worker that was hardest to serve or is branched on, node to go on with, least bound of the nodes that
    # nothing can close, row that showed the last node to be empty
    nodes: Nodes
    box: Box
    cuts: Cuts
    program: Program
    draft: Draft
    answer: Ints  # (W, Q) classes of the best assignment
    scratch: Ints  # (8, max(K, W, T, Q, CUTS) + 1)
