"""The loop: decide, step, decide, step, ... until all requests have ended.

It runs without Python for compiled rules and comes back only where it must: rows full, a decision to be made outside,
a pause that was asked for, the end. It can be called again at once in every case; `State.counters[PHASE]` remembers
where it was.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import EXTERNAL
from lbopt.kernels.routing.decide import decide
from lbopt.kernels.simulation.admission import admit, bind_pool, drain_queues, known_until, num_known, reveal_to_pool
from lbopt.kernels.simulation.real_choice import has_real_choice, loads_differ
from lbopt.kernels.simulation.step import take_step
from lbopt.kernels.simulation.tables import (
    ACTIVE,
    BEGIN_DECISION,
    BIND,
    DECIDE,
    DECISIONS,
    FINISHED,
    FREE_SLOTS,
    NEEDS_DECISION,
    NEEDS_WORKER,
    PAUSE_AT,
    PAUSED,
    PHASE,
    POOL_HEAD,
    POOL_TAIL,
    REAL_CHOICE,
    REAL_CHOICES,
    ROUND_ROBIN_AT,
    ROW,
    ROWS_FULL,
    STEP,
    STUCK,
    TAKE_STEP,
    UNDISCOVERED,
    WAITING,
    Requests,
    Rows,
    Setting,
    State,
)


@kernel
def run(requests: Requests, setting: Setting, state: State, rows: Rows) -> int:
    """Run until something outside is needed; returns why (FINISHED, ROWS_FULL, NEEDS_DECISION, ...)."""
    counters = state.counters
    N = requests.prompt.size
    while True:
        if counters[PHASE] == BEGIN_DECISION:
            if 0 <= counters[PAUSE_AT] <= counters[STEP] and _something_to_decide(requests, setting, state):
                counters[PAUSE_AT] = -1
                return PAUSED
            reveal_to_pool(requests, setting, state)
            if setting.immediate:
                _note_bindings(setting.slots_per_worker, state.load, state.queued_tokens, counters)
                drain_queues(requests, setting, state)
                counters[PHASE] = BIND
            else:
                _note_decision(requests, setting, state)
                counters[PHASE] = DECIDE
        if counters[PHASE] == DECIDE:
            if counters[POOL_HEAD] < counters[POOL_TAIL] and counters[FREE_SLOTS] > 0:
                if setting.code == EXTERNAL:
                    return NEEDS_DECISION
                _decide_compiled(requests, setting, state)
            counters[PHASE] = TAKE_STEP
        if counters[PHASE] == BIND:
            if setting.code != EXTERNAL:
                bind_pool(requests, setting, state)
            elif counters[POOL_HEAD] < counters[POOL_TAIL]:
                return NEEDS_WORKER
            counters[PHASE] = TAKE_STEP

        if counters[ACTIVE] == 0:
            if setting.reveal_target < 0 and counters[UNDISCOVERED] < N:
                # idle until somebody comes: the clock jumps, no step passes
                state.clock[0] = max(state.clock[0], requests.arrival[counters[UNDISCOVERED]])
                counters[PHASE] = BEGIN_DECISION
                continue
            if counters[POOL_HEAD] < counters[POOL_TAIL] or counters[UNDISCOVERED] < N:
                return STUCK
            return FINISHED
        if counters[ROW] == rows.active.size:
            return ROWS_FULL
        take_step(requests, setting, state, rows)
        counters[PHASE] = BEGIN_DECISION


@kernel
def admit_external(requests: Requests, state: State) -> None:
    """Carry out the decision that the outside wrote into `State.choice`, one worker or -1 per pool position."""
    admit(state.counters[POOL_TAIL] - state.counters[POOL_HEAD], requests, state)
    state.counters[PHASE] = TAKE_STEP


@kernel
def num_waiting(requests: Requests, setting: Setting, state: State) -> int:
    """Requests that the decision of this step faces: pool or queues, and those that become known with it."""
    counters, target = state.counters, setting.reveal_target
    until = known_until(requests.prompt.size, requests.arrival, target, counters, state.clock)
    return num_known(counters) + until - counters[UNDISCOVERED]


@kernel
def _something_to_decide(requests: Requests, setting: Setting, state: State) -> bool:
    free = state.load.size * setting.slots_per_worker - state.counters[ACTIVE]
    return free > 0 and num_waiting(requests, setting, state) > 0


@kernel
def _note_bindings(slots_per_worker: int, load: Ints, queued_tokens: Ints, counters: Ints) -> None:
    """Write down what immediate admission faces in this step, before anything starts."""
    free = load.size * slots_per_worker - counters[ACTIVE]
    waiting = num_known(counters)
    counters[FREE_SLOTS] = free
    counters[WAITING] = waiting
    counters[REAL_CHOICE] = loads_differ(load, queued_tokens) if waiting > 0 and free > 0 else 0


@kernel
def _note_decision(requests: Requests, setting: Setting, state: State) -> None:
    """Write down what the pooled decision faces, before it is made."""
    counters = state.counters
    free = state.load.size * setting.slots_per_worker - counters[ACTIVE]
    counters[FREE_SLOTS] = free
    pool = state.pool[counters[POOL_HEAD] : counters[POOL_TAIL]]
    counters[WAITING] = pool.size
    real = has_real_choice(state.load, state.running, setting.slots_per_worker, pool, requests.prompt)
    counters[REAL_CHOICE] = real
    if pool.size > 0 and free > 0:
        counters[DECISIONS] += 1
        counters[REAL_CHOICES] += real


@kernel
def _decide_compiled(requests: Requests, setting: Setting, state: State) -> None:
    counters = state.counters
    state.scratch_load[:] = state.load
    state.scratch_running[:] = state.running
    state.scratch_free[:] = setting.slots_per_worker - state.running
    reach = decide(
        setting.code,
        setting.parameters,
        state.scratch_load,
        state.scratch_free,
        state.scratch_running,
        state.pool[counters[POOL_HEAD] : counters[POOL_TAIL]],
        requests.prompt,
        state.reveal_step,
        counters[STEP],
        requests.uniforms,
        counters[ROUND_ROBIN_AT : ROUND_ROBIN_AT + 1],
        state.choice,
    )
    admit(reach, requests, state)
