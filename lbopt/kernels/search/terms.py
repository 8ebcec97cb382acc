"""The words of the search: the decision in its terms, and the state that the search works in.

Letters: W open workers (with free slots), ascending in slots; K size classes, ascending in size; Q the most slots of a
worker; M the envelope, that is, the largest load allowed. A pattern is what one worker takes: classes[:slots], largest
first. Prices and profits are in 1/scale tokens. Arrays of `Search` may be longer than the decision needs: they are
reused from one decision to the next.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.by_reference import by_reference

#: What stands for "nothing fits"; far below every profit.
NONE = -(1 << 62)

# facts of a step
WORKERS, TOTAL, HEAVIEST, SCALE, MOST, FORCED = 0, 1, 2, 3, 4, 5

# what is known of a search; WARM: whether its master has been used for this decision; PATIENCE: how many prices of
# others a single envelope is evaluated at before it gets its own
COST, NODES, PRICES, WORK, BOUND, WARM, PATIENCE = 0, 1, 2, 3, 4, 5, 6

# columns of a node: bound on the cost, first and last envelope, stage, the number of prices there were when it was last
# evaluated, how often it was
LB, FIRST, LAST, STAGE, TRIED, TIMES = 0, 1, 2, 3, 4, 5

# trees of placements: columns of their nodes (the node above; the class placed; where, as below; tokens that are not
# ruled out, -2**62 = closed; placements so far; the range whose tree it is of), and their state (nodes in use; workers
# that the path leaves; tokens that it places; nodes that may still be bounded, 0 = all trees rest; the range that is
# worked on; its bound when that began; the node being bounded, -1 = none; pivots made for it; the node that was closed
# last, -1 where none was; the class that was placed to close it, -1 where its bound sufficed; nodes bounded so far)
PARENT, CLASS, PLACE, REACH, DEEP, TREE = 0, 1, 2, 3, 4, 5
USED, SIZE, TOKENS, LEFT_NODES, AT, BEFORE, CURRENT, PIVOTED, CLOSED, CHOSEN, TURN = range(11)

# where a placement puts a request, if not on a worker
WAITS, ROOT = -1, -2

# efforts of an evaluation
GLANCE, ROUGH, QUICK, EXACT = -2, -1, 0, 1

# how `advance` ends
STUCK, OPEN, PROVED = -1, 0, 1


@by_reference
class Step(NamedTuple):
    """A decision at H = 0, every slot of which is filled by exactly one request.

    facts: workers G; loads before, summed over all workers; the heaviest of them; scale; the most tokens that can be
    admitted; requests that must be.
    """

    v: Ints  # (K,) sizes, ascending; a forced class after the unforced one of the same size
    n: Ints  # (K,) requests
    floor: Ints  # (K,) least price: 0, or far below for classes whose requests must be admitted
    load: Ints  # (W,) ascending in slots
    slots: Ints  # (W,)
    rank: Ints  # (W,) workers in the order of filling: fewest slots first, then the heaviest
    sums: Ints  # (Q + 1,) totals of the smallest requests
    facts: Ints  # (6,)


@by_reference
class Master(NamedTuple):
    """The restricted master program, its basis and its inverse; see `master`.

    C columns, R tight rows at most.
    """

    owner: Ints  # (C,) worker of each column
    items: Ints  # (C, Q) its classes, -1 beyond its length
    size: Ints  # (C,) total of its sizes
    worth: Floats  # (C,) tokens it brings, with a bonus for forced requests; strongly negative if artificial
    value: Floats  # (C,) the same, but strongly negative where it does not fit the present envelope
    limit: Floats  # (K,) requests of each class
    counts: Ints  # (3,) columns, tight rows, pivots
    row: Ints  # (R,) tight rows
    place: Ints  # (W + K,) position of a row among the tight ones, -1 = slack
    basic: Ints  # (R,) column that is basic at each position
    inverse: Floats  # (R, R) [basic position, tight position]
    level: Floats  # (R,) value of each basic column
    slack: Floats  # (K,) value of each slack variable
    dual: Floats  # (R,) price of each tight row
    step: Floats  # (R,) scratch: change of the basic columns
    rate: Floats  # (K,) scratch: change of the slack variables


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    known: Ints  # (7,) best cost, open ranges, prices, work done, proved bound, warm master, patience
    node: Ints  # (., 6) open ranges of envelopes
    bank: Ints  # (P, K) the newest P prices
    bank_at: Ints  # (P,) the envelopes they were found at
    answer: Ints  # (W, Q) the best assignment
    price: Ints  # (K,) the prices in use
    best_price: Ints  # (K,) the prices of the best bound at this envelope
    value: Ints  # (W,) best profit found at the prices in use
    bound: Ints  # (W,) what no profit exceeds
    pattern: Ints  # (W, 3 Q + 4) the patterns of `value`
    leaf: Ints  # (W, 3 Q + 4) an assignment in the making
    spare: Ints  # (W, 3 Q + 4) the best assignment of a descent or of the columns
    kept: Ints  # (W, 3 Q + 4) the assignment of a dive
    asked: Ints  # (3, K) prices, requests and sizes that the lists below were made for
    listed: Ints  # (Q + 1, 6) what is known of these lists, see `choices`
    choices: Ints  # (Q + 1, 5, K) what workers of each number of slots choose from at these prices
    short: Ints  # (2, K) scratch of evaluations
    table: Ints  # (2, TABLE + 1) scratch of evaluations
    work: Ints  # (6, W + 12) scratch over workers
    classes: Ints  # (6, K) scratch over classes
    first: Ints  # (W,) where the list of a worker's near-optimal patterns begins, -1 = not listed
    last: Ints  # (W,) and where it ends
    items: Ints  # (., MOST_LISTED) their classes
    loss: Ints  # (.,) their losses
    viable: Ints  # (.,) whether they are still possible
    undecided: Ints  # (W,) minus one everywhere
    cut: Ints  # (12,) where a descent was interrupted


@by_reference
class Tree(NamedTuple):
    """Trees of placements, see `placement_tree`, and what the path in use leaves of the decision."""

    state: Ints  # (11,)
    node: Ints  # (., 6)
    taken: Ints  # (W, Q) classes placed on each worker
    placed: Ints  # (W,) how many
    left: Ints  # (K,) requests that are left
    who: Ints  # (W,) worker r of those with slots left, ascending in these
    load: Ints  # (W,) of worker r, with what is placed on it
    slots: Ints  # (W,) of worker r, those left
    rank: Ints  # (W,) the order of filling
    sums: Ints  # (Q + 1,) totals of the smallest requests left
    number: Ints  # (W,) scratch
    bound: Ints  # (W,) what no profit of worker r exceeds at the node's prices
    lost: Ints  # (W,) what is lost where worker r takes a request of the class to be placed
    load_then: Ints  # (W,) loads and slots of workers that have taken one
    slots_then: Ints  # (W,)


@by_reference
class Masters(NamedTuple):
    """The two master programs and the trees of a search; apart from it, as most kernels need none of their arrays."""

    whole: Master  # of all workers; stays from one envelope to the next
    rest: Master  # of the workers that a dive has left
    tree: Tree
