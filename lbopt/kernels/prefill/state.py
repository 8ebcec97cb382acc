"""The state of the prefill simulation: groups of arrays and records.

Requests are numbered by arrival, units of all instances one after the other: unit d of instance g is u = g * D + d. -1
means "none" throughout. Times are seconds; infinity means "never".

To read an array from a group costs some nanoseconds (see `kernels.by_reference`), so there are few arrays, of records
with many fields, and kernels take each from its group once. What a loop scans alone is an array of its own.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference

#: What has become of a request.
STATUS = np.dtype(
    [
        ("instance", np.int64),  # -1: not bound, or refused
        ("unit", np.int64),  # within the instance; -1 like it
        ("left", np.int64),  # tokens that no pass has taken yet
        ("following", np.int64),  # next in the queue of its unit
        ("last_pass", np.int64),  # number of the pass with its last chunk
        ("served_by", np.int64),  # how many passes served it
        ("dispatched", np.float64),  # s; NaN before
        ("began", np.float64),  # s, start of the first pass that serves it; NaN before
    ],
    align=True,
)

#: The queue of a unit.
QUEUE = integers(
    "first",  # request
    "last",
    "in_pass",  # tokens of the unit in the running pass
)

#: An instance.
INSTANCE = np.dtype(
    [
        ("running", np.int64),  # number of the running pass; -1: none, or busy without requests at the start
        ("completes", np.int64),  # requests that end with it
        ("computes", np.int64),  # its tokens
        ("outstanding", np.int64),  # requests sent and not finished
        ("tokens", np.int64),  # sent and not computed, the sum of its backlog
        ("on_the_way", np.int64),  # requests that have not reached it
        ("on_device", np.int64),  # requests queued at its units
        ("placed_in_turn", np.int64),  # requests that IN_TURN has placed
        ("is_touched", np.int64),
        ("was_sent", np.int64),  # 1: a request was sent, and no pass has ended there since the last of them reached it
        ("batch", np.int64),  # of the last one: 1: sent, 2: the first pass runs that it could be in, 0: that has ended
        ("fullest", np.int64),  # tokens of the fullest unit in the running pass
        ("begun", np.int64),  # passes that began
        ("closed", np.int64),  # of the pass to come: OPEN, CLOSED, FULL or TOPPED_UP
        ("started", np.float64),  # s, the running pass
        ("predicted_end", np.float64),  # s, of the running pass; infinity before the first one
        ("free_since", np.float64),  # s
    ],
    align=True,
)

#: A pass that began.
PASS = np.dtype(
    [
        ("instance", np.int64),
        ("tokens", np.int64),  # computed, all units
        ("fullest", np.int64),  # tokens of the fullest unit
        ("longest", np.int64),  # longest chunk of a request
        ("requests", np.int64),
        ("start", np.float64),  # s
        ("end", np.float64),  # s
    ],
    align=True,
)

#: Where the run stands.
PROGRESS = np.dtype(
    [
        ("now", np.float64),  # s
        ("next_end", np.float64),  # s, of a pass
        ("next_reach", np.float64),  # s, of an instance, by a request on the way
        ("next_change", np.float64),  # s, of the number of healthy instances
        ("timer", np.float64),  # s, when the scheduler looks again though nothing else happens
        ("last_dispatch", np.float64),  # s
        ("interval", np.float64),  # s
        ("mean_pass", np.float64),  # s, what Algorithm 1 takes a pass to last
        ("last_start", np.float64),  # s, the latest start of a pass that a batch was sent ahead for
        ("law_slope", np.float64),  # s per token: a pass is predicted to take
        ("law_tokens", np.float64),  # law_seconds + law_slope * (tokens of its fullest unit - law_tokens)
        ("law_seconds", np.float64),  # s
        ("margin", np.float64),  # s before the predicted end at which a batch is to reach its instance
        ("tick_anchor", np.float64),  # s
        ("tick_index", np.int64),  # the next tick is at tick_anchor + tick_index * interval
        ("ticks_waiting", np.int64),  # ticks since the last dispatch that passed while requests waited
        ("measured", np.int64),  # pass times since the start
        ("coming", np.int64),  # first request that has not arrived
        ("queue_head", np.int64),
        ("queue_tail", np.int64),
        ("way_head", np.int64),
        ("way_tail", np.int64),
        ("unfinished", np.int64),  # requests neither finished nor refused
        ("queued", np.int64),  # tokens of the prompts in the queue of the scheduler
        ("not_begun", np.int64),  # of those that have arrived
        ("refused", np.int64),
        ("row", np.int64),  # rows written since the caller emptied them
        ("passes", np.int64),  # passes begun before them
        ("idle", np.int64),  # instances without a running pass
        ("target", np.int64),  # next instance of the ring, modulo the healthy ones
        ("turn", np.int64),  # arrivals that ROUND_ROBIN has gone through
        ("healthy", np.int64),  # instances that get new work: those below this number
        ("change", np.int64),  # next change of it
        ("touched", np.int64),  # instances to which something happened in this moment
        ("moments_left", np.int64),  # the loop comes back when it is 0; negative = never
    ],
    align=True,
)


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
    margin: float  # of ANTICIPATING, in standard errors of the predicted end
    spacing: float  # of ANTICIPATING, between starts of passes, as a share of (mean pass / healthy instances)
    error: float  # standard deviation that is put on predicted pass times, as a share of them
    deviations: Floats  # float64 (M,), standard normal: those of the predictions, in turn
    change_at: Floats  # float64 (C,), s, ascending: when the number of healthy instances changes
    change_to: Ints  # int64 (C,)


@by_reference
class State(NamedTuple):
    """Everything that changes while the loop runs."""

    status: Records  # STATUS (n,), of each request
    waiting: Ints  # int64 (n,), queue of the scheduler, request numbers in [queue_head, queue_tail)
    on_the_way: Ints  # int64 (n,), in order of dispatch; [way_head, way_tail) have not reached their instance
    queues: Records  # QUEUE (N * D,)
    backlog: Ints  # int64 (N, D), tokens sent and not computed: on the way, queued, and in the running pass
    instances: Records  # INSTANCE (N,)
    ends: Floats  # float64 (N,), s, end of the running pass; infinity: none runs
    touched: Ints  # int64 (N,), instances to which something happened in this moment, the first `touched` of them
    window: Floats  # float64 (W,), s, the last pass times that were measured
    seen: Floats  # float64 (W,), tokens of the fullest unit in those passes; of ANTICIPATING alone
    missed: Floats  # float64 (W,), s by which they ended after their predicted end
    progress: Record  # PROGRESS


class Room(NamedTuple):
    """How much an instance may hold and still be ready."""

    tokens: int  # below so many, of all units
    requests: int  # below so many queued, of all units
    while_left_over: int  # 1: it may run what was left over


@by_reference
class Passes(NamedTuple):
    """One row a pass that began."""

    rows: Records  # PASS (K,)
    of_unit: Ints  # int64 (K, D), tokens of each unit; (0, D) where it is not kept


# why the loop came back
FINISHED = 0
ROWS_FULL = 1
PAUSED = 2
STUCK = 3  # nothing will happen any more, and requests wait
