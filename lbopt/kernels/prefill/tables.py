"""The arrays that the prefill simulation works on.

Requests are numbered by arrival, units of all instances one after the other: unit d of instance g is u = g * D + d. -1
means "none" throughout. Times are seconds; infinity means "never".
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.by_reference import by_reference


@by_reference
class Requests(NamedTuple):
    """What is true of the requests; read only."""

    arrival: Floats  # float64 (n,), ascending
    length: Ints  # int64 (n,), tokens of the prompt
    hits: Ints  # int64 (n, N, D), tokens of it that are cached on each unit; (0, 0, 0) where nothing is cached
    uniforms: Floats  # float64 (n,) in [0, 1), for RANDOM


@by_reference
class Setting(NamedTuple):
    """Rules of the run."""

    policy: int
    allocation: int
    engine: int
    idle_bypass: bool
    base: float  # seconds of a pass: base + per_token * fullest unit + per_longest * longest chunk
    per_token: float
    per_longest: float
    chunk: int  # most tokens of a unit in a pass
    capacity: int  # most requests of a unit in a pass
    queue_limit: int  # an arrival that finds so many who have not begun is refused
    latency: float  # s, from the scheduler to an instance
    fixed_interval: float  # s; negative = (mean pass + latency) / healthy instances
    change_at: Floats  # float64 (C,), s, ascending: when the number of healthy instances changes
    change_to: Ints  # int64 (C,)


@by_reference
class State(NamedTuple):
    """Everything that changes while the loop runs."""

    # requests, (n,)
    instance: Ints  # -1: not bound, or refused
    unit: Ints  # within the instance
    dispatched: Floats
    began: Floats  # start of the first pass that serves it
    last_pass: Ints  # number of the pass with its last chunk
    passes: Ints  # how many served it
    left: Ints  # tokens that no pass has taken yet
    deferred: Ints  # dispatches that left it at the scheduler
    following: Ints  # next in the queue of its unit
    waiting: Ints  # queue of the scheduler, request numbers in [QUEUE_HEAD, QUEUE_TAIL)
    on_the_way: Ints  # request numbers in order of dispatch; [WAY_HEAD, WAY_TAIL) have not reached their instance
    # units, (N * D,)
    first: Ints
    last: Ints
    backlog: Ints  # (N, D), tokens sent and not computed: on the way, queued, and in the running pass
    in_pass: Ints  # tokens of the running pass
    # instances, (N,)
    ends: Floats  # of the running pass; infinity: none runs
    began_pass: Floats
    free_since: Floats
    running: Ints  # number of the running pass; -1: none, or busy with nobody at the start
    completes: Ints  # requests that end with it
    outstanding: Ints  # requests sent and not finished
    coming: Ints  # of them on the way
    on_device: Ints  # of them queued at its units
    turn: Ints  # units that IN_TURN has gone through
    touched: Ints  # instances to which something happened in this moment, the first TOUCHED of them
    is_touched: Ints
    # scratch, (n,)
    batch: Ints
    key: Ints
    chosen: Ints  # unit of each position of the batch
    # others
    window: Floats  # (W,), the last pass times that were measured
    counters: Ints  # (NUM_COUNTERS,)
    clock: Floats  # (NUM_CLOCKS,)


@by_reference
class Passes(NamedTuple):
    """One row a pass that began."""

    instance: Ints  # int64 (K,)
    start: Floats  # float64 (K,)
    end: Floats  # float64 (K,)
    tokens: Ints  # int64 (K,), computed, all units
    fullest: Ints  # int64 (K,)
    longest: Ints  # int64 (K,), longest chunk
    requests: Ints  # int64 (K,)
    of_unit: Ints  # int64 (K, D), tokens of each; (0, D) where nobody asks


# places in State.counters
COMING = 0  # first request that has not arrived
QUEUE_HEAD = 1
QUEUE_TAIL = 2
WAY_HEAD = 3
WAY_TAIL = 4
UNFINISHED = 5  # requests neither finished nor refused
NOT_BEGUN = 6  # of those that have arrived
REFUSED = 7
ROW = 8  # rows written since the caller emptied them
PASSES = 9  # passes begun before them
IDLE = 10  # instances without a running pass
TARGET = 11  # next instance of the ring, modulo the healthy ones
TURN = 12  # arrivals that ROUND_ROBIN has gone through
HEALTHY = 13  # instances that get new work: those below this number
CHANGE = 14  # next change of it
TICK_INDEX = 15  # the next tick is at TICK_ANCHOR + TICK_INDEX * interval
TICKS_WAITING = 16  # that passed since the last dispatch while somebody waited
MEASURED = 17  # pass times since the start
TOUCHED = 18
MOMENTS_LEFT = 19  # the loop comes back when it is 0; negative = never
NUM_COUNTERS = 20

# places in State.clock
NOW = 0
NEXT_END = 1  # least of State.ends
TIMER = 2  # when the scheduler looks again though nothing else happens
LAST_DISPATCH = 3
INTERVAL = 4
MEAN_PASS = 5  # what Algorithm 1 takes a pass to last
TICK_ANCHOR = 6
NUM_CLOCKS = 7

# why the loop came back
FINISHED = 0
ROWS_FULL = 1
PAUSED = 2
STUCK = 3  # nothing will happen any more, and requests wait
