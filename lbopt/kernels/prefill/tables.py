"""The arrays that the prefill simulation works on.

Requests are numbered by arrival, units of all instances one after the other: unit d of instance g is u = g * D + d. -1
means "none" throughout. Times are seconds; infinity means "never".

To read a field of a group costs some nanoseconds (see `kernels.by_reference`), so there are few arrays with many
columns, and kernels read a field once.
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
    parameters: Ints  # int64 (NUM_PARAMETERS,), of the allocation
    engine: int
    idle_bypass: bool
    by_freedom: bool
    while_left_over: bool
    base: float  # seconds of a pass, see `instances`
    per_token: float
    per_longest: float
    per_mean: float
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

    records: Ints  # int64 (n, NUM_FIELDS), of each request
    times: Floats  # float64 (n, 2), s: DISPATCHED and BEGAN of each request
    waiting: Ints  # int64 (n,), queue of the scheduler, request numbers in [QUEUE_HEAD, QUEUE_TAIL)
    on_the_way: Ints  # int64 (n,), in order of dispatch; [WAY_HEAD, WAY_TAIL) have not reached their instance
    queues: Ints  # int64 (N * D, 3): FIRST and LAST request queued at the unit, tokens IN_PASS
    backlog: Ints  # int64 (N, D), tokens sent and not computed: on the way, queued, and in the running pass
    instances: Ints  # int64 (N, NUM_COLUMNS)
    clocks: Floats  # float64 (N, 3), s: ENDS, STARTED, FREE_SINCE
    touched: Ints  # int64 (N,), instances to which something happened in this moment, the first TOUCHED of them
    batch: Ints  # int64 (n,), scratch
    key: Ints  # int64 (n,), scratch
    chosen: Ints  # int64 (n,), unit of each position of the batch
    window: Floats  # float64 (W,), the last pass times that were measured
    counters: Ints  # int64 (NUM_COUNTERS,)
    clock: Floats  # float64 (NUM_CLOCKS,)


@by_reference
class Passes(NamedTuple):
    """One row a pass that began."""

    times: Floats  # float64 (K, 2), s: start and end
    counts: Ints  # int64 (K, NUM_COUNTS)
    of_unit: Ints  # int64 (K, D), tokens of each unit; (0, D) where nobody asks


# columns of State.records
INSTANCE = 0  # -1: not bound, or refused
UNIT = 1  # within the instance
LEFT = 2  # tokens that no pass has taken yet
FOLLOWING = 3  # next in the queue of its unit
LAST_PASS = 4  # number of the pass with its last chunk
SERVED_BY = 5  # how many passes served it
DEFERRED = 6  # dispatches that kept it at the scheduler
NUM_FIELDS = 7

# columns of State.times
DISPATCHED = 0
BEGAN = 1  # start of the first pass that serves it

# columns of State.queues
FIRST = 0
LAST = 1
IN_PASS = 2

# columns of State.instances
RUNNING = 0  # number of the running pass; -1: none, or busy with nobody at the start
COMPLETES = 1  # requests that end with it
COMPUTES = 2  # its tokens
OUTSTANDING = 3  # requests sent and not finished
TOKENS = 4  # sent and not computed, the sum of its backlog
ON_THE_WAY = 5  # requests that have not reached it
ON_DEVICE = 6  # requests queued at its units
PLACED_IN_TURN = 7  # requests that IN_TURN has placed
IS_TOUCHED = 8
WAS_SENT = 9  # 1: a request was sent to it, and no pass has ended there since the last of them reached it
BATCH = 10  # of the last batch: 1: sent, 2: the first pass runs that it could be in, 0: that has ended
NUM_COLUMNS = 11

# columns of State.clocks
ENDS = 0  # of the running pass; infinity: none runs
STARTED = 1
FREE_SINCE = 2

# columns of Passes.counts
OF_INSTANCE = 0
PASS_TOKENS = 1  # computed, all units
FULLEST = 2  # tokens of the fullest unit
LONGEST = 3  # longest chunk of a request
PASS_REQUESTS = 4
NUM_COUNTS = 5

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
NEXT_END = 0  # of a pass
NEXT_REACH = 1  # of an instance, by a request on the way
NEXT_CHANGE = 2  # of the number of healthy instances
TIMER = 3  # when the scheduler looks again though nothing else happens
NOW = 4
LAST_DISPATCH = 5
INTERVAL = 6
MEAN_PASS = 7  # what Algorithm 1 takes a pass to last
TICK_ANCHOR = 8
NUM_CLOCKS = 9

# why the loop came back
FINISHED = 0
ROWS_FULL = 1
PAUSED = 2
STUCK = 3  # nothing will happen any more, and requests wait
