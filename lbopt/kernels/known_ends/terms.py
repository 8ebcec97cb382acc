"""The words of the search over windows in which requests end, and the state that it works in.

Requests with equal work over the window form a class. Where fewer requests wait than there are slots, requests that
bring nothing fill the others, so every open worker w takes a *pattern*: exactly slots[w] requests. With the loads of
each step shifted by the heaviest load before, so that every envelope M_h is at least 0,

    cost = constant + G * sum_h M_h - sum of the work admitted,        M_h >= peak[w, h] + what w takes.

Prices pi[w, h] >= 0 that add up to G at every step (row W of `pi` is a heaviest worker without free slots, whose load
is 0) and prices mu[k] of the classes turn this into a bound, see `bounds.py`.

Letters: W open workers, K classes in ascending order of total work, T steps of the window, Q the most slots of a
worker. A *chain* count C[w, j] is the number of requests of classes j, j + 1, ... on worker w. The search branches on
them: they split many requests that are nearly alike where one class after the other would change nothing.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints

# facts of a window
WORKERS, CONSTANT, SCALE, ADMITS_ALL = range(4)

# what is known of a search
COST, BOUND, OPEN_NODES, NODES, WORK, STARTED, CURRENT, LINES = range(8)
PIVOTS, PLUNGE, INSIDE, AT_NODE, VISITED, ORDERED, OUTCOME, FRESH = range(8, 16)
STALE = 16
KNOWN = 17

# what a node tells of its branch
AT_WORKER, AT_CLASS, AT_LIMIT, UP_FIRST = range(4)

# how `advance` ends
STUCK, OPEN, DONE = -1, 0, 1

# kinds of rows of the linear program
ENVELOPE, WORKER, CLASS, CHAIN = range(4)

#: Bound of a node that is closed.
CLOSED = 1 << 62

#: Stands for a count without a limit, and for a value that nothing reaches.
FAR = 1 << 61


class Window(NamedTuple):
    """A decision over a window; every slot is filled by exactly one request."""

    peak: Ints  # (W, T) loads of the open workers before, less the heaviest of all workers at that step
    slots: Ints  # (W,)
    owner: Ints  # (T,) the heaviest worker before; W is one without free slots
    v: Ints  # (K, T) work of a request of each class
    total: Ints  # (K,) the same over the window, ascending
    n: Ints  # (K,) requests
    must: Ints  # (K,) 1 where all of them are admitted in every decision
    facts: Ints  # (4,) workers G, closed ones included; constant of the cost; units of price per token; 1 if all start


class Prices(NamedTuple):
    """Integer prices in units of 1/scale, and what they say of the node at hand."""

    pi: Ints  # (W + 1, T)
    mu: Ints  # (K,)
    value: Ints  # (K,) scratch: priced requests of one worker
    best: Ints  # (Q + 1,) scratch: cheapest choice of so many requests


class Box(NamedTuple):
    """What a node allows."""

    allowed: Ints  # (W, K) 0 where the prices at the root rule a class out
    least: Ints  # (W, K) chain counts
    most: Ints  # (W, K)


class Draft(NamedTuple):
    """An assignment in the making."""

    pattern: Ints  # (W, Q) classes
    loads: Ints  # (W, T)
    left: Ints  # (K,) requests that wait
    tops: Ints  # (T, 5) heaviest load and its worker, second load and its worker, third load


class Program(NamedTuple):
    """A dictionary of the linear program: each basic variable as a sum over the nonbasic ones.

    Variables: the columns (class on a worker), the T envelopes, one slack for each row.
    """

    klass: Ints  # (columns,)
    worker: Ints  # (columns,)
    kind: Ints  # (R,) of each row, by the number of its slack; -1 is none
    first: Ints  # (R,) what the row speaks of: its worker or class
    second: Ints  # (R,) its step or class
    basis: Ints  # (R,) variable of each line
    nonbasic: Ints  # (n,) variable of each place
    where: Ints  # (n + R,) place of each variable, or -1 - its line
    lower: Floats  # (n + R,) of each variable
    upper: Floats  # (n + R,)
    value: Floats  # (n + R,)
    table: Floats  # (R, n)
    rest: Floats  # (R,) constant of each line
    reduced: Floats  # (n,) reduced costs
    ratio: Floats  # (n,) scratch
    size: Floats  # (K, T) work in units of the program
    weight: Floats  # (K,) total work in these units
    start: Floats  # (W, T) loads before in these units
    number: Floats  # (4,) tokens per unit, objective at the nonbasic values, tolerance, cost that is dear enough


class Nodes(NamedTuple):
    """The nodes: each adds one chain count to what its parent says."""

    parent: Ints
    worker: Ints
    klass: Ints
    limit: Ints  # a: at most a where sense is 1, at least a + 1 where it is -1
    sense: Ints
    bound: Ints  # CLOSED where nothing is left to do
    open: Ints  # numbers of the open ones
