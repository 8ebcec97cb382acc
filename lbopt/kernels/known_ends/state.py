"""The state of the search over windows with departures: the decision in its terms, and what the search works on.

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

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.by_reference import by_reference

#: How far a search is, one record: cost of the best assignment and proved bound, tokens; open nodes and all nodes; work
#: done, about microseconds; 1 once it has begun; the node at hand; lines of the dictionary; pivots; 1 where a child of
#: the last node is next; 1 inside a node; pivots at this node; nodes visited; 1 where nodes are visited in the order of
#: a proof; how the last node ended; 1 where the program was made anew at this node; 1 where columns are gone since;
#: `deadline` and `expired`, see `lbopt.kernels.deadline`.
PROGRESS = integers(
    "cost",
    "bound",
    "open_nodes",
    "nodes",
    "work",
    "started",
    "current",
    "lines",
    "pivots",
    "plunge",
    "inside",
    "node_pivots",
    "visited",
    "ordered",
    "outcome",
    "fresh",
    "stale",
    "deadline",
    "expired",
)

#: The chain count that a node is split on, one record: its worker, its least class, the limit a of the child "at most
#: a" (the other is "at least a + 1"), and 1 where the latter is visited first.
BRANCH = integers("worker", "klass", "limit", "up_first")

#: Numbers of a linear program, one record: tokens per unit, objective at the nonbasic values, tolerance, and the
#: objective from which on the node is too dear.
NUMBERS = np.dtype((np.record, [(name, np.float64) for name in ("unit", "offset", "tolerance", "dear")]))

#: Numbers of an ascent, one record: the best bound so far in tokens, the length of a step, the factor by which steps
#: shrink, 1 once it has begun, and the cost of an assignment, which it goes for.
ASCENT = np.dtype((np.record, [(name, np.float64) for name in ("best", "step", "shrink", "started", "goal")]))

# how `advance` ends
STUCK, OPEN, DONE = -1, 0, 1

# kinds of rows of the linear program
ENVELOPE, WORKER, CLASS, CHAIN = range(4)

#: Bound of a node that is closed.
CLOSED = 1 << 62

#: Stands for a count without a limit, and for a value that nothing reaches.
INFINITY = 1 << 61


@by_reference
class Window(NamedTuple):
    """A decision over a window; every slot is filled by exactly one request."""

    peak: Ints  # (W, T) loads of the open workers before, less the heaviest of all workers at that step
    slots: Ints  # (W,)
    owner: Ints  # (T,) the heaviest worker before; W is one without free slots
    v: Ints  # (K, T) work of a request of each class
    total: Ints  # (K,) the same over the window, ascending
    n: Ints  # (K,) requests
    must: Ints  # (K,) 1 where all of them are admitted in every decision
    workers: int  # G, closed ones included
    constant: int  # of the cost, tokens
    scale: int  # units of price per token


@by_reference
class Prices(NamedTuple):
    """Integer prices in units of 1/scale, and what they say of the node at hand."""

    pi: Ints  # (W + 1, T)
    mu: Ints  # (K,)
    value: Ints  # (K,) scratch: priced requests of one worker
    best: Ints  # (Q + 1,) scratch: cheapest choice of so many requests


@by_reference
class Box(NamedTuple):
    """What a node allows."""

    allowed: Ints  # (W, K) 0 where the prices at the root rule a class out
    least: Ints  # (W, K) chain counts
    most: Ints  # (W, K)


@by_reference
class Tops(NamedTuple):
    """The heaviest workers of each step; a worker of -1 stands for the heaviest load before."""

    load: Ints  # (T,) of the heaviest worker
    worker: Ints  # (T,)
    second_load: Ints  # (T,)
    second_worker: Ints  # (T,)
    third_load: Ints  # (T,)


@by_reference
class Draft(NamedTuple):
    """An assignment in the making."""

    pattern: Ints  # (W, Q) classes
    loads: Ints  # (W, T)
    left: Ints  # (K,) requests that wait
    tops: Tops
    rest: Ints  # (T,) scratch


@by_reference
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
    numbers: Record  # NUMBERS


@by_reference
class Nodes(NamedTuple):
    """The nodes: each adds one chain count to what its parent says."""

    parent: Ints
    worker: Ints
    klass: Ints
    limit: Ints  # a: at most a where sense is 1, at least a + 1 where it is -1
    sense: Ints
    bound: Ints  # CLOSED where nothing is left to do
    open: Ints  # numbers of the open ones


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    progress: Record  # PROGRESS
    program: Program
    prices: Prices
    box: Box
    draft: Draft
    nodes: Nodes
    answer: Ints  # (W, Q) classes of the best assignment
    branch: Record  # BRANCH: where the last node was split


@by_reference
class Climb(NamedTuple):
    """Prices per token that become better step by step; change in place."""

    numbers: Record  # ASCENT
    pi: Floats  # (W + 1, T) of the loads
    mu: Floats  # (K,) of the classes
    best_pi: Floats  # (W + 1, T) the best ones so far
    best_mu: Floats  # (K,)
    mean_loads: Floats  # (W + 1, T) averages over recent patterns, tokens
    mean_used: Floats  # (K,) requests
