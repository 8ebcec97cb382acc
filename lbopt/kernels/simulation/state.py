"""The state of the loop, and what routers see of it.

What routers see of the workers: the truth, or the last report of each worker and what they sent it since.

Worker w makes report n at the first decision from time T[w, n] on, where T[w, 0] = 0 and

    T[w, n + 1] = T[w, n] + period (1 + jitter (2 u - 1)),    u the even draws of the worker's own stream,

and with a period of zero at every decision. A report is lost where the odd draw is below `lost`. Else all front ends
see the worker as it is at this moment; what a front end added by itself is gone. An optimistic front end adds each
request that it sends: running where it sees a free slot, else queued; a few rules add it in a form of their own,
`AS_QUEUED` and `AS_TOKENS`. Front ends do not see what others send.

Request i comes in through front end i mod C. Where sight is not stale there is one front end, and its arrays are those
of the truth, so that rules read the same arrays in both cases.

The books of a front end are what it sent itself and has not ended (`routing.books`): it knows that exactly, and no
report wipes it. Rules whose workers report such sums instead see them like everything else, `reports.gathers`.

Source: the balancers of vLLM and SGLang (reports of 20 ms to 10 s, own requests added until the next one).

The state of the compiled loop: groups of arrays and records.

`Requests` is the truth, `Setting` the rules of the run, `State` everything that changes, `Rows` the next few thousand
steps of output. Requests are numbered by arrival; -1 means "none" throughout.

A worker's own queue, first in, first out: requests bound to it that do not run, chained by number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import Detail, blocks_of
from lbopt.kernels.sampling.draw import uniform, word

#: What a front end adds of a request that it sends: nothing; one request, running or queued; C queued requests (vllm);
#: its queued tokens (smg).
NOTHING = 0
OPTIMISTIC = 1
AS_QUEUED = 2
AS_TOKENS = 3

#: How reports come. `stale`: 0 where routers see the truth; `own`: one of the codes above; `gathers`: 1 where reports
#: carry the books.
REPORTS = np.dtype(
    [
        ("stale", np.int64),
        ("own", np.int64),
        ("gathers", np.int64),
        ("period", np.float64),  # s
        ("jitter", np.float64),
        ("lost", np.float64),
        ("seed", np.uint64),
    ],
    align=True,
)


@by_reference
class Sight(NamedTuple):
    """What each of C front ends sees of G workers, and when the next reports are due."""

    load: Ints  # int64 (C, G), resident tokens
    running: Ints  # int64 (C, G)
    queued: Ints  # int64 (C, G), requests bound to the worker but not started
    queued_tokens: Ints  # int64 (C, G)
    committed: Ints  # int64 (C, G), blocks, where sight is stale and a rule outside may ask for them; else (C, 0)
    books: Ints  # int64 (C, G), the truth: what each front end has in its books; (C, 0) for rules without
    own: Ints  # the same as the rule sees it
    turns: Records  # routing.state.TURN (C,) for each kind of requests: where round-robin stands
    due: Floats  # float64 (G,), s: of the next report
    made: Ints  # int64 (G,), reports so far
    reports: Record  # REPORTS


@kernel
def share(seed: np.uint64, w: int, n: int) -> float:
    """Return draw `n` of worker `w`, in [0, 1)."""
    return uniform(word(word(seed, w), n))


@kernel
def make_reports(state: State) -> None:
    """Let every worker whose report is due be seen as it is, unless the report is lost."""
    sight, clock = state.sight, state.progress.clock
    reports, due, made = sight.reports, sight.due, sight.made
    for w in range(due.size):
        arrived = False
        while due[w] <= clock:
            n = made[w]
            made[w] = n + 1
            arrived = arrived or reports.lost == 0.0 or share(reports.seed, w, 2 * n + 1) >= reports.lost
            if reports.period == 0.0:
                break
            u = share(reports.seed, w, 2 * n) if reports.jitter > 0.0 else 0.5
            due[w] = due[w] + reports.period * (1.0 + reports.jitter * (2.0 * u - 1.0))
        if arrived:
            for f in range(len(sight.load)):
                sight.load[f, w] = state.load[w]
                sight.running[f, w] = state.running[w]
                sight.queued[f, w] = state.queued[w]
                sight.queued_tokens[f, w] = state.queued_tokens[w]
                if sight.committed.shape[1] > 0:
                    sight.committed[f, w] = state.detail.committed[w]
                if reports.gathers == 1:
                    sight.own[f, w] = sight.books[f, w]


@kernel
def note_sent(f: int, i: int, w: int, state: State) -> None:
    """Add request `i`, which front end `f` has sent to worker `w`, to what it sees, where it does so."""
    sight, tokens = state.sight, state.size[i]
    own = sight.reports.own
    if own == NOTHING:
        return
    if sight.committed.shape[1] > 0:
        sight.committed[f, w] += blocks_of(tokens, state.detail.rules)
    if sight.reports.gathers == 1:
        sight.own[f, w] += tokens
    if own == AS_QUEUED:
        sight.queued[f, w] += len(sight.load)
    elif own == AS_TOKENS:
        sight.queued_tokens[f, w] += tokens
    elif sight.running[f, w] < state.slots[w]:
        sight.running[f, w] += 1
        sight.load[f, w] += tokens
    else:
        sight.queued[f, w] += 1
        sight.queued_tokens[f, w] += tokens


@kernel
def next_report(sight: Sight, running: Ints, queued: Ints) -> float:
    """Return when the next report is due, s; infinity where none will say anything that routers do not see already.

    Zero, so at once, where reports come with every decision and the last one was lost.

    Parameters
    ----------
    running, queued
        int64 (G,), the truth.
    """
    reports = sight.reports
    if reports.stale == 0 or (reports.period == 0.0 and reports.lost == 0.0):
        return np.inf
    outdated = False
    for f in range(len(sight.running)):
        for w in range(sight.due.size):
            outdated = outdated or sight.running[f, w] != running[w] or sight.queued[f, w] != queued[w]
    return sight.due.min() if outdated else np.inf


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
        ("phase", np.int64),  # BEGIN_DECISION, DECIDE, BIND, END_DECISION or TAKE_STEP
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
    profile: Ints  # int64 (N,), row of the two tables below; empty where it is unknown which experts requests use
    unused: NDArray[np.float32]  # float32 (M, L * E), log of the chance that a step does not use the expert; or empty
    preference: Floats  # float64 (M, G), of a profile for each worker; empty where the rule has none
    kind: Ints  # int64 (N,), row of the table below; empty where all workers serve all requests
    allowed: Ints  # int64 (K, G), 1 where a worker serves requests of the kind; (0, 0) where all serve all


@by_reference
class Setting(NamedTuple):
    """Rules of the run; scalars."""

    slots_per_worker: int  # of most workers, and the most of any
    num_slots: int  # of the fleet
    immediate: bool  # bound on arrival to a worker's queue, instead of pooled until a slot is free
    reveal_target: int  # closed loop: requests kept waiting; -1 = by arrival times
    fixed_seconds: float  # step time in its barrier form, see kernels/simulation/step.py
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
    free: Ints  # int64 (G,), slots that the router of a pool sees free
    kinds: Ints  # int64 (K,), scratch: kinds that wait; (0,) where all workers serve all, as the next two
    marked: Ints  # int64 (K,), scratch: kinds that were met, or are held
    asked: Ints  # int64 (N,), scratch: requests of one kind
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
    running: Ints  # int64 (K, G), requests of each worker during the step; (0, G) where they are not asked for
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
END_DECISION = 3
TAKE_STEP = 4

# why the loop came back
FINISHED = 0
ROWS_FULL = 1
NEEDS_DECISION = 2  # pooled: write State.choice for all pool positions, call `admit_external`, run on
NEEDS_WORKER = 3  # immediate: call `admission.bind_next`, run on
PAUSED = 4
STUCK = 5  # nothing runs, requests wait, and the rule admitted none


@kernel
def join_queue(i: int, w: int, state: State) -> None:
    """Put request i at the end of worker w's own queue."""
    state.worker[i] = w
    state.next_in_queue[i] = -1
    if state.queued[w] == 0:
        state.queue_head[w] = i
    else:
        state.next_in_queue[state.queue_tail[w]] = i
    state.queue_tail[w] = i
    state.queued[w] += 1
    state.queued_tokens[w] += state.size[i]
    state.progress.queued += 1


@kernel
def take_head(w: int, state: State) -> int:
    """Take the head from worker `w`'s queue, which is not empty."""
    i = state.queue_head[w]
    take_out(i, -1, w, state)
    return i


@kernel
def take_out(i: int, before: int, w: int, state: State) -> None:
    """Take request `i` out of worker `w`'s queue.

    Parameters
    ----------
    i, before
        The request, and the one in front of it; -1: it is the head.
    state
        Changed in place.
    """
    following = state.next_in_queue[i]
    if before < 0:
        state.queue_head[w] = following
    else:
        state.next_in_queue[before] = following
        if state.queue_tail[w] == i:
            state.queue_tail[w] = before
    state.queued[w] -= 1
    state.queued_tokens[w] -= state.size[i]
    state.progress.queued -= 1
