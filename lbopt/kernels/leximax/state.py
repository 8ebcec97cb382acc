"""The state of the search for the most even loads: lists of patterns, and all that a choice among them works in.

Letters: W open workers, K size classes, Q the most slots of a worker, I prices, R rows. A row is a pattern of one
worker; profits and losses are in 1/scale tokens, see `lbopt.kernels.search.near_optimal`.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Ints, Record, integers

#: How a search ends.
DONE, OPEN = 1, 0

#: Patterns that are listed for a worker at a node, and branches looked at for them.
AT_A_NODE, BRANCHES = 4_000, 60_000

#: Larger than every load.
INFINITY = 1 << 61

#: State of a choice. `depth`; `fresh`: 1 where its node is new; `steps`: work done; `gains`: improvements; `cut`: nodes
#: whose list was cut short; `deadline` and `expired`, see `lbopt.kernels.deadline`.
CHOICE = integers("depth", "fresh", "steps", "gains", "cut", "deadline", "expired")


class Lists(NamedTuple):
    """The patterns of W workers, R rows in all, measured at I prices, the first of which the lists are made by."""

    v: Ints  # (K,) sizes
    base: Ints  # (W,) loads before
    slots: Ints  # (W,)
    listed: Ints  # (W,) whether its patterns are listed
    profit: Ints  # (I, K) profit of a request at each of the prices
    bound: Ints  # (I, W) what no profit of a worker exceeds
    items: Ints  # (R, Q) classes, :slots of the owner; with room beyond for those listed at nodes
    loss: Ints  # (R, I)
    load: Ints  # (R,) load of the owner with this pattern
    forced: Ints  # (K,) whether the requests of a class must be used


class Choice(NamedTuple):
    """The state of a search; changes in place."""

    state: Record  # CHOICE
    avail: Ints  # (K,) requests left
    row: Ints  # (W,) the decided row, -1 = undecided
    order: Ints  # (W + 1,) who is decided at a depth
    cursor: Ints  # (W + 1,)
    left: Ints  # (W + 2, I) budgets left
    need: Ints  # (W + 2,) sum of the loads of the undecided
    begin: Ints  # (W + 2, W) lists on the stack
    end: Ints  # (W + 2, W)
    rows: Ints  # (W + 2,) where the rows listed at a node begin
    short: Ints  # (W + 1,) whether the list of a node was cut short
    bound: Ints  # (W + 1, W) the least loads below such a node, ascending
    live: Ints  # (.,) the stack of rows
    best: Ints  # (W,) the best loads, largest first
    answer: Ints  # (W, Q) the classes of each worker there; -1 in front where they came from elsewhere
    lo: Ints  # (W,) scratch: least load
    hi: Ints  # (W,) scratch: largest load
    even: Ints  # (W,) scratch: the most even loads of the undecided
    loads: Ints  # (W,) scratch: loads, ascending
    least: Ints  # (W, I) scratch: least losses
    spare: Ints  # (I,) scratch: what the budgets leave beyond the least losses
