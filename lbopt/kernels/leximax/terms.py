"""The words of the search for the most even loads: lists of patterns, and the state of a choice among them.

Letters: W open workers, K size classes, Q the most slots of a worker, I prices, R rows. A row is a pattern of one
worker; profits and losses are in 1/scale tokens, see `lbopt.kernels.search.near_optimal`.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Ints

#: How a search ends.
DONE, OPEN = 1, 0

# state of a choice: depth, whether its node is new, work done, improvements, nodes whose list was cut short
DEPTH, NEW, STEPS, GAINS, CUT = 0, 1, 2, 3, 4

#: Patterns that are listed for a worker at a node, and branches looked at for them.
AT_A_NODE, BRANCHES = 4_000, 60_000

#: Larger than every load.
FAR = 1 << 61


class Lists(NamedTuple):
    """The patterns of W workers, R rows in all, measured at I prices."""

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

    state: Ints  # (5,)
    avail: Ints  # (K,) requests left
    row: Ints  # (W,) the decided row, -1 = undecided
    order: Ints  # (W + 1,) who is decided at a depth
    cursor: Ints  # (W + 1,)
    left: Ints  # (W + 2, I) budgets left
    need: Ints  # (W + 2,) sum of the loads of the undecided
    begin: Ints  # (W + 2, W) lists on the stack
    end: Ints  # (W + 2, W)
    rows: Ints  # (W + 2,) where the rows listed at a node begin
    bound: Ints  # (W + 1, W) the least loads below a node whose list was cut short, ascending; -1 where it was not
    live: Ints  # (.,) the stack of rows
    best: Ints  # (W,) the best loads, largest first
    answer: Ints  # (W, Q) the classes of each worker there; -1 in front where they came from elsewhere
    box: Ints  # (4, W) scratch: least and largest load, the even loads, those sorted
    least: Ints  # (W + 1, I) scratch: least losses
