"""The state of the search under conditions: the decision that it works on, and all arrays that it works in, by name.

Letters: W workers that decide something (free slots, or running requests that may pause); K classes of requests that
nothing tells apart, the last of which is the *blank*, a request of no work that fills a slot; Q the most slots of a
worker; M the envelope, that is, the largest load allowed, in units of pace.

What one worker does is a *pattern*: exactly slots[w] requests, blanks among them, and a *mode*, which says who of its
running requests pause. Its value is what it takes off the objective at a given envelope:

    objective = G M - (loads before) - (sum of the values of the patterns)

so a request on a worker is worth its work there, and its cost of waiting; a pause is worth minus its work and its cost.
Prices and profits are in 1/scale units.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

#: The profit of a pattern where nothing fits; far below every profit.
NONE = -(1 << 62)

#: Work of a request on a worker that may not take it; far above every margin.
FORBIDDEN = 1 << 60

#: The bound of prices whose evaluation a limit of the solve cut short: it says nothing.
NO_BOUND = 1 << 61

#: Looks at candidates that make a unit of work.
_LOOKS = 1024

#: How `envelopes.advance` ends; FULL: there is no room for another range.
FULL, OPEN, PROVED = -1, 0, 1

#: What is known of a search. `cost`: objective of the best decision; `found`: 1 where there is a decision; `bound`:
#: proved lower bound on the objective; `ranges`: in use; `prices`: rows written; `records`: of trees, words written;
#: `written`: 0 where the proof did not fit its arrays; `work`, `most`, `deadline`, `expired`: see
#: `lbopt.kernels.deadline`; `range`: whose tree is being searched, -1 = none; `nodes`, `solved`: nodes and envelopes
#: that were given prices; `warm`: 1 where the master program has been used; `dives`, `evens`: dives, and starts from
#: even decisions; `own`: 1 where the best decision is of this search, in `Search.answer`.
KNOWN = integers(
    *("cost", "found", "bound", "ranges", "prices", "records", "written", "work", "most", "deadline", "expired"),
    *("range", "nodes", "solved", "warm", "dives", "evens", "own"),
)

#: A range of envelopes. `bound`: on the objective; `first`, `last`: envelopes; `state`: one of the names below;
#: `tries`: trees so far; `priced`: row of the prices that gave the bound; `tree`, `length`: its records where a tree
#: closed it, -1 for none; `open`: 1 as long as it is.
RANGE = integers("bound", "first", "last", "state", "tries", "priced", "tree", "length", "open")

#: The states of an open range: bounded at prices of others; given prices of its own. Trees follow, counted by `tries`.
BORROWED, OWN = 0, 1

#: Where the tree of placements at one envelope stands. `depth`: of the node in use; `fresh`: 1 where that node is not
#: bounded yet; `left`: nodes that it may still bound; `begun`, `priced`: where its records and its prices begin.
TREE = integers("depth", "fresh", "left", "begun", "priced")

#: `steps`: after which the search for a pattern is cut off; `lowest`: the least bound on the pattern so far; `bound`:
#: the newest one; `ticks`: looks at candidates that make no whole unit of work yet.
EFFORT = integers("steps", "lowest", "bound", "ticks")

#: Where the pivots of a restricted program stand, as `search.columns.reoptimise` keeps it.
PIVOTING = integers("turns", "entries")


@by_reference
class Step(NamedTuple):
    """A decision under conditions, every slot of which is filled by a request or a blank."""

    value: Ints  # (W, K) what a request is worth on a worker
    work: Ints  # (W, K) what it adds to the load; FORBIDDEN where the worker may not take it
    need: Ints  # (2, K) what it takes of each of two resources
    room: Ints  # (2, W) what is free of them
    copies: Ints  # (K,) requests
    floor: Ints  # (K,) least price: 0, or far below for classes whose requests must be admitted
    load: Ints  # (W,) before, with none paused
    slots: Ints  # (W,)
    order: Ints  # (W,) workers in the order of filling: fewest slots first, then the heaviest
    mode_first: Ints  # (W + 1,) where the modes of a worker begin; the first of them pauses none
    mode_cut: Ints  # (.,) what a mode takes off the load
    mode_value: Ints  # (.,) what it is worth, 0 or less
    workers: int  # G, with those that decide nothing
    total: int  # loads before of all G workers
    heaviest: int  # the largest of those that decide nothing, 0 for none
    scale: int  # units of a price in a unit of value
    bonus: int  # that a request which must be admitted is worth beyond its value
    penalty: int  # that a pattern costs which is not allowed


@by_reference
class Path(NamedTuple):
    """What the path of a tree has decided, and what it leaves."""

    taken: Ints  # (W, Q) classes placed on each worker
    placed: Ints  # (W,) how many
    used: Ints  # (W,) their work
    worth: Ints  # (W,) their value
    held: Ints  # (2, W) what they hold of each resource
    left: Ints  # (K,) requests that may still be placed
    banned: Ints  # (W, K) 1 where a worker takes no more of a class than is placed on it


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    known: Record  # KNOWN
    ranges: Records  # (.,) RANGE
    prices: Ints  # (P, K) prices that closed something, in the order of their use
    records: Ints  # (.,) trees that closed an envelope, as words; see `tree`
    answer: Ints  # (W, Q) the best decision: classes of each worker
    answer_mode: Ints  # (W,) and its modes
    price: Ints  # (K,) the prices in use
    best_price: Ints  # (K,) the prices of the best bound
    best_bound: Ints  # (W,) what no profit exceeds at these
    bound: Ints  # (W,) the best profit of each worker at the prices in use, or more
    value: Ints  # (W,) the best profit found
    least: Ints  # (W,) a profit that a known pattern has, NONE for none
    pattern: Ints  # (W, Q) the patterns of these profits
    mode: Ints  # (W,)
    leaf: Ints  # (W, Q) a decision in the making
    leaf_mode: Ints  # (W,)
    avail: Ints  # (K,) requests that it leaves
    spare: Ints  # (3, W) what it leaves of margins and resources
    successor: Ints  # (W, Q) the waiting class that could take the place of a request, -1 for none
    gained: Ints  # (W, Q) what that gains
    saved: Ints  # (W, Q) the best of a decision in the making
    filled: Ints  # (W,) slots that are filled in it
    light: Ints  # (3, W) the least that a request adds to a worker's load and takes of its resources
    ordered: Ints  # (W, K) classes by their work on a worker
    amount: Floats  # (W, K) how much of a class a worker holds in the restricted program
    part: Floats  # (K,) how far that is from whole requests
    pivoting: Record  # PIVOTING
    path: Path
    # the tree of placements, level by level
    tree: Record  # TREE
    pair_class: Ints  # (D,) class and worker of a branch, and 1 where the case of the placement comes first
    pair_worker: Ints  # (D,)
    pair_first: Ints  # (D,)
    cursor: Ints  # (D,) the case in use
    level_price: Ints  # (D, K) prices of the node
    level_bound: Ints  # (D, W) what no profit exceeds at these
    # scratch of patterns
    effort: Record  # EFFORT
    item: Ints  # (K,) classes that fit
    profit: Ints  # (K,) their profits
    weights: Ints  # (3, K) their work, and what they take of the two resources, less that of the lightest
    number: Ints  # (K,) requests of each that may be taken
    reduced: Ints  # (K,) profits less what the multipliers charge
    order: Ints  # (K,) places in descending order of these
    rooms: Ints  # (2,) what is free of the two resources
    limit: Ints  # (3,) margin and what is free of the two resources, less what the lightest take
    multiplier: Ints  # (3,) of the limits
    steepest: Ints  # (3,) the largest that may be used
    kept: Ints  # (W, 3) the multipliers of a worker's last pattern
    usage: Ints  # (3,) what the classes of largest reduced profit take of them
    tops: Ints  # (3, BUCKETS + 1) most profit of one request that takes at most so many grains of a limit
    grain: Ints  # (3,) what a grain of each limit is; 0 where it never binds
    top: Ints  # (Q,) places of those classes
    stack: Ints  # (Q + 1,) places of the items chosen
    repeats: Ints  # (Q + 1,) how often the last one was chosen
    start: Ints  # (Q + 1,) place to go on with at each depth
    sums: Ints  # (5, Q + 1) profit, bound without what follows, margin and rooms at each depth
    chosen: Ints  # (Q,) classes of the best pattern


@kernel
def book(s: Search, looks: int) -> None:
    """Count so many looks at a candidate as work: whatever looks at candidates has to end at the limits of a solve."""
    ticks = s.effort.ticks + looks
    s.known.work += ticks // _LOOKS
    s.effort.ticks = ticks % _LOOKS
