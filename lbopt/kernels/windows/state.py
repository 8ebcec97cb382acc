"""The state of the window search: the decision in its terms, and what the search works on.

Every new request outlives the window and follows one profile a(h), so what worker w receives enters its load at every
step by one number: S_w, the total size of the slots[w] requests placed on it. With P[w, h] the load without sizes,

    cost = G * sum_h max_w (P[w, h] + S_w) - T * sum_w S_w + constant,            T = H + 1.

Letters: W open workers (with free slots); T steps of the window; K size classes, ascending; Q the most slots of a
worker; D the requests of a worker that a node may speak of. A box says low[w] <= S_w <= high[w], and which classes the
D largest requests of w may have. Columns of the linear program: the T envelopes, then the W sums, n = T + W. Its rows,
in this order: worker w at step h (w * T + h), closed workers at step h, low sides, high sides, cuts. A row is written
as (something linear) >= (its right side), so that its price is never negative.

Kernels take the parts of the state that they read. The same names mean the same part everywhere.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.known_ends.state import Draft as Made
from lbopt.kernels.known_ends.state import Window as Fleet

#: Cuts kept at a time.
CUTS = 64

#: How far a search is, one record: cost of the best assignment and proved bound, tokens; open nodes; work done, about
#: microseconds; cuts in use; 1 once it has begun; nodes visited; pivots; the worker that was hardest to serve or is
#: branched on; the node to go on with, -1 for the one of least bound; the least bound of the nodes that nothing can
#: close; the row that showed the last node to be empty, -1 for none; how often the steps for one node were doubled;
#: `deadline` and `expired`, see `lbopt.kernels.deadline`.
PROGRESS = integers(
    "cost",
    "bound",
    "open_nodes",
    "work",
    "cuts",
    "started",
    "visited",
    "pivots",
    "worker",
    "next_node",
    "unsettled",
    "empty_row",
    "doubled",
    "deadline",
    "expired",
)

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
    forced: int  # the same in all
    small: Ints  # (Q + 1,) totals of the smallest requests
    listed: Ints  # all totals that few requests can have, ascending for each number of them
    begin: Ints  # (Q + 2,) where those of c requests begin; they end where those of c + 1 begin


@by_reference
class Profile(NamedTuple):
    """The loads over the window, and the rows of the linear program."""

    peak: Ints  # (W, T) load without sizes, less the heaviest of all workers at that step
    floor: Ints  # (T,) heaviest closed worker, in the same terms
    worker: Ints  # (rows,) the worker whose sum is in the row, -1 = none or several
    step: Ints  # (rows,) the step whose envelope is in the row, -1 = none
    workers: int  # G, closed ones included
    constant: int  # of the cost, tokens
    scale: int  # units of a price in a proof


@by_reference
class Window(NamedTuple):
    """A decision over a window, every slot of which is filled by exactly one request."""

    pool: Pool
    profile: Profile
    fleet: Fleet  # the same decision, where every request of a class has its size at every step
    slots: Ints  # (W,)
    low: Ints  # (W,) total of the smallest requests that fill it
    high: Ints  # (W,) total of the largest
    order: Ints  # (W,) workers in the order of filling: fewest slots first


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
    made: Made  # the same pattern and requests left, with loads


@by_reference
class Scratch(NamedTuple):
    """Arrays that a kernel fills before it reads them, and that mean nothing after it."""

    row: Ints  # (Q,) a set of requests
    filled: Ints  # (W,) slots that are filled
    below: Ints  # (2,) classes of a set whose total is next to a goal, below or at it; -1 for none
    above: Ints  # (2,) the same above it
    opened: Ints  # (W,) slot of each worker that is opened
    link: Ints  # (W,) next worker of the same limit
    head: Ints  # (K,) first worker of each limit
    turn: Ints  # (W,) an order of filling
    margin: Ints  # (W,) most that a worker may hold beneath the envelopes
    goal: Ints  # (W,) a copy of the goals
    gaps: Ints  # (T,) what a worker may hold before it is the heaviest at a step, ascending
    inside: Ints  # (W,) workers of a cut that may be added
    demand: Ints  # (K + 1,) slots that ask for each class
    limits: Ints  # (W,) right sides of such cuts
    order: Ints  # (W,) workers by what they hold a slot
    in_basis: Ints  # (CUTS,) 1 where the cut is in the basis
    gain: Ints  # (W,) growth of the exact bound by a token of each worker
    paid: Ints  # (T,) prices of each step
    largest: Ints  # (T,) position of the largest price of each step


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    progress: Record  # PROGRESS
    nodes: Nodes
    box: Box
    cuts: Cuts
    program: Program
    draft: Draft
    answer: Ints  # (W, Q) classes of the best assignment
    scratch: Scratch
