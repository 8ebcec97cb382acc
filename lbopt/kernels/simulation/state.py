"""The state of the compiled loop: groups of arrays and records.

`Requests` is the truth, `Setting` the rules of the run, `State` everything that changes, `Rows` the next few thousand
steps of output. Requests are numbered by arrival; -1 means "none" throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.detail.state import Detail
from lbopt.kernels.simulation.sight import Sight

#: One running request. Unused ones are chained, and reused last out, first in, so that those in use stay together in
#: the cache.
ENDING = integers(
    "following",  # ending in the same step, or the next unused one
    "worker",  # -1 in an unused one
    "tokens",  # that the request frees when it ends
    "request",
)

#: Where the run stands: `State.progress`.
PROGRESS = np.dtype(
    [
        ("clock", np.float64),  # s
        ("step", np.int64),  # steps taken so far
        ("undiscovered", np.int64),  # first request not yet revealed
        ("pool_head", np.int64),
        ("pool_tail", np.int64),
        ("active", np.int64),  # requests running
        ("queued", np.int64),  # requests in all workers' queues
        ("phase", np.int64),  # BEGIN_DECISION, DECIDE, BIND or TAKE_STEP
        ("row", np.int64),  # rows written since the caller emptied them
        ("admitted", np.int64),  # of the present decision, as the next three: for the row of the step that follows
        ("waiting", np.int64),
        ("free_slots", np.int64),
        ("real_choice", np.int64),
        ("pause_at", np.int64),  # stop before the first decision from this step on that has a choice; -1 = never
        ("decisions", np.int64),  # pooled: those that admitted or could have admitted something; immediate: bindings
        ("real_choices", np.int64),
        ("unused_ending", np.int64),  # first of the chain in `State.endings`
    ],
    align=True,
)


@by_reference
class Requests(NamedTuple):
    """What is true of the requests; read only."""

    prompt: Ints  # int64 (N,), tokens
    output: Ints  # int64 (N,), decode steps, >= 1
    arrival: Floats  # float64 (N,), seconds; empty in a closed loop
    uniforms: Floats  # float64 (N, 2), draws of the random rules; may be empty
    profile: Ints  # int64 (N,), row of the two tables below; empty where nobody knows which experts requests use
    unused: NDArray[np.float32]  # float32 (M, L * E), log of the chance that a step does not use the expert; or empty
    preference: Floats  # float64 (M, G), of a profile for each worker; empty where the rule has none


@by_reference
class Setting(NamedTuple):
    """Rules of the run; scalars."""

    slots_per_worker: int  # of most workers, and the most of any
    num_slots: int  # of the fleet
    immediate: bool  # bound on arrival to a worker's queue, instead of pooled until a slot is free
    reveal_target: int  # closed loop: requests kept waiting; -1 = by arrival times
    fixed_seconds: float  # step time in its barrier form, see kernels/simulation/step_time.py
    seconds_per_token: float
    seconds_per_mean_token: float
    seconds_of_running: Floats  # float64 (B + 1,), or empty
    seconds_of_active: Floats  # float64 (G * B + 1,), or empty
    seconds_per_expert: float  # for each different expert of a layer that the requests of a worker use
    expert_layers: int  # layers in `Requests.unused`
    kv_capacity: int  # tokens a worker can hold; -1 = unlimited
    code: int  # the rule, see routing.codes
    parameters: Record  # routing.state.PARAMETERS


@by_reference
class State(NamedTuple):
    """Everything that changes while the loop runs."""

    load: Ints  # int64 (G,), resident tokens
    running: Ints  # int64 (G,)
    queued: Ints  # int64 (G,), requests bound to the worker but not started (immediate admission)
    queued_tokens: Ints  # int64 (G,)
    queue_head: Ints  # int64 (G,), request at the head of the worker's queue
    queue_tail: Ints  # int64 (G,)
    next_in_queue: Ints  # int64 (N,)
    calendar: Ints  # int64 (longest output + 1,), first of the endings at step = index mod length
    endings: Records  # ENDING (most that can run at once,), one per running request; unused ones are chained
    pool: Ints  # int64 (N,), request numbers; pool[pool_head:pool_tail] wait unbound, in order of revelation
    worker: Ints  # int64 (N,), output: where the request ran
    start_step: Ints  # int64 (N,), output
    reveal_step: Ints  # int64 (N,), output
    start_clock: Floats  # float64 (N,), output, seconds
    reveal_clock: Floats  # float64 (N,), output, seconds: arrival, or revelation in a closed loop
    progress: Record  # PROGRESS
    sight: Sight  # what routers see of the workers
    detail: Detail  # workers in detail; off by default
    slots: Ints  # int64 (G,), of each worker
    size: Ints  # int64 (N,), tokens of a request as rules see it: its prompt, and what a worker that left had made
    choice: Ints  # int64 (N,), scratch: worker of each pool position
    scratch_load: Ints  # int64 (G,)
    scratch_free: Ints  # int64 (G,)
    scratch_running: Ints  # int64 (G,)
    unused: Floats  # float64 (G, L * E), sums of `Requests.unused` over running requests; (G, 0) where unknown
    experts_changed: Ints  # int64 (G,), 1 where `experts` has to be counted anew
    experts: Floats  # float64 (G,), different experts of a layer in use, mean over layers
    experts_known_of: Floats  # float64 (G, L * E), values of `unused` that `experts` was counted from
    experts_known_terms: Floats  # float64 (G, L * E), expm1 of them


@by_reference
class Rows(NamedTuple):
    """One row a step; row r of a run is step r + 1 and the decision before it."""

    barrier_loads: Ints  # int64 (K, G), during the step: after admission, before growth
    post_loads: Ints  # int64 (K, G), after growth and completions, before the next admission
    running: Ints  # int64 (K, G), requests of each worker during the step; (0, G) where nobody asks
    active: Ints  # int64 (K,), requests running during the step
    seconds: Floats  # float64 (K,)
    clock: Floats  # float64 (K,), at the end of the step
    completed: Ints  # int64 (K,)
    admitted: Ints  # int64 (K,), by the decision before the step
    waiting: Ints  # int64 (K,), seen by the decision before the step
    free_slots: Ints  # int64 (K,), seen by the decision before the step
    real_choice: Ints  # int64 (K,), 1 where two feasible placements differ
    experts: Floats  # float64 (K,), `State.experts`, mean over workers that run something; NaN where unknown
    over_capacity: Ints  # int64 (K,), workers whose barrier load exceeds kv_capacity
    made: Ints  # int64 (K,), tokens made, where `Detail` is on; so the next two
    computed: Ints  # int64 (K,), tokens of prompts computed
    blocks: Ints  # int64 (K,), of memory in use


# phases of a step, so that the loop can stop for the outside and go on
BEGIN_DECISION = 0
DECIDE = 1
BIND = 2
TAKE_STEP = 3

# why the loop came back
FINISHED = 0
ROWS_FULL = 1
NEEDS_DECISION = 2  # pooled: write State.choice for all pool positions, call `admit_external`, run on
NEEDS_WORKER = 3  # immediate: call `admission.bind_next`, run on
PAUSED = 4
STUCK = 5  # nothing runs, requests wait, and the rule admitted none
