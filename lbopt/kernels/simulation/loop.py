"""The loop: decide, step, decide, step, ... until all requests have ended.

It runs without Python for compiled rules and comes back only where it must: rows full, a decision to be made outside,
a pause that was asked for, the end. It can be called again at once in every case; `State.progress.phase` remembers
where it was.
"""

import math

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import count_committed, see_free_slots
from lbopt.kernels.detail.step import take_detailed_step
from lbopt.kernels.detail.workers import awaited as awaited_in_detail
from lbopt.kernels.detail.workers import begin_decision, end_decision
from lbopt.kernels.routing.codes import EXTERNAL
from lbopt.kernels.routing.decide import decide
from lbopt.kernels.routing.state import Room, Waiting
from lbopt.kernels.simulation.admission import (
    bind_pool,
    carry_out_choice,
    drain_queues,
    has_real_choice,
    known_until,
    loads_differ,
    num_known,
    reveal_to_pool,
)
from lbopt.kernels.simulation.eligible import close_others, list_kinds, spread_choice, take_kind
from lbopt.kernels.simulation.state import (
    BEGIN_DECISION,
    BIND,
    DECIDE,
    END_DECISION,
    FINISHED,
    NEEDS_DECISION,
    NEEDS_WORKER,
    PAUSED,
    ROWS_FULL,
    STUCK,
    TAKE_STEP,
    Requests,
    Rows,
    Setting,
    State,
    make_reports,
    next_report,
)
from lbopt.kernels.simulation.step import take_step


@kernel
def run(requests: Requests, setting: Setting, state: State, rows: Rows) -> int:
    """Run until something outside is needed; returns why (FINISHED, ROWS_FULL, NEEDS_DECISION, ...).

    Parameters
    ----------
    state
        Changed in place.
    rows
        Rows from ``state.progress.row`` on are written; the caller empties them by setting it to 0.
    """
    progress = state.progress
    N = requests.prompt.size
    in_detail = state.detail.rules.on == 1
    while True:
        if progress.phase == BEGIN_DECISION:
            if 0 <= progress.pause_at <= progress.step and _something_to_decide(requests, setting, state):
                progress.pause_at = -1
                return PAUSED
            if in_detail:
                begin_decision(requests, setting, state)
            reveal_to_pool(requests, setting, state)
            if setting.immediate:
                _note_bindings(setting.num_slots, state.load, state.queued_tokens, progress)
            drain_queues(requests, setting, state)
            if state.sight.reports.stale == 1:
                if state.sight.committed.shape[1] > 0:
                    count_committed(state)
                make_reports(state)
            if not setting.immediate:
                _note_decision(requests, setting, state)
            progress.phase = BIND if setting.immediate else DECIDE
        if progress.phase == DECIDE:
            if progress.pool_head < progress.pool_tail and _decide(requests, setting, state):
                return NEEDS_DECISION
            progress.phase = END_DECISION
        if progress.phase == BIND:
            if setting.code != EXTERNAL:
                bind_pool(-1, requests, setting, state)
            elif progress.pool_head < progress.pool_tail:
                return NEEDS_WORKER
            progress.phase = END_DECISION

        if progress.phase == END_DECISION:
            if in_detail:
                end_decision(state)
            progress.phase = TAKE_STEP
        if progress.active == 0:
            awaited = math.inf  # idle until a request comes, or is seen to have room: the clock jumps, no step passes
            if setting.reveal_target < 0 and progress.undiscovered < N:
                awaited = requests.arrival[progress.undiscovered]
            if progress.pool_head < progress.pool_tail:
                awaited = min(awaited, next_report(state.sight, state.running, state.queued))
            if in_detail and (num_known(progress) > 0 or progress.undiscovered < N):
                awaited = min(awaited, awaited_in_detail(state))
            if awaited < math.inf:
                progress.clock = max(progress.clock, awaited)
                progress.phase = BEGIN_DECISION
                continue
            if progress.pool_head < progress.pool_tail or progress.undiscovered < N:
                return STUCK
            return FINISHED
        if progress.row == rows.active.size:
            return ROWS_FULL
        if in_detail:
            take_detailed_step(requests, setting, state, rows)
        else:
            take_step(requests, setting, state, rows)
        progress.phase = BEGIN_DECISION


@kernel
def admit_external(requests: Requests, setting: Setting, state: State) -> None:
    """Carry out the decision that the outside wrote into `State.choice`, one worker or -1 per pool position."""
    carry_out_choice(state.progress.pool_tail - state.progress.pool_head, requests, setting, state)
    state.progress.phase = END_DECISION


@kernel
def num_waiting(requests: Requests, setting: Setting, state: State) -> int:
    """Requests that the decision of this step faces: pool or queues, and those that become known with it."""
    progress, target = state.progress, setting.reveal_target
    until = known_until(requests.prompt.size, requests.arrival, target, progress)
    return num_known(progress) + until - progress.undiscovered


@kernel
def _something_to_decide(requests: Requests, setting: Setting, state: State) -> bool:
    free = state.load.size * setting.slots_per_worker - state.progress.active
    return free > 0 and num_waiting(requests, setting, state) > 0


@kernel
def _note_bindings(slots: int, load: Ints, queued_tokens: Ints, progress: Record) -> None:
    """Write down what immediate admission faces in this step, before anything starts.

    Parameters
    ----------
    load, queued_tokens
        int64 (G,), tokens.
    progress
        As in `State`; changed in place.
    """
    free = slots - progress.active
    waiting = num_known(progress)
    progress.free_slots = free
    progress.waiting = waiting
    progress.real_choice = loads_differ(load, queued_tokens) if waiting > 0 and free > 0 else 0


@kernel
def _note_decision(requests: Requests, setting: Setting, state: State) -> None:
    """Write down what the pooled decision faces, before it is made."""
    progress = state.progress
    pool = state.pool[progress.pool_head : progress.pool_tail]
    progress.waiting = pool.size
    free = setting.num_slots - progress.active
    if state.detail.rules.on == 1:
        real = loads_differ(state.load, state.queued_tokens) if pool.size > 0 and free > 0 else 0
    else:
        real = has_real_choice(state.load, state.running, setting.slots_per_worker, pool, requests.prompt)
    progress.free_slots = free
    progress.real_choice = real
    if pool.size > 0 and free > 0:
        progress.decisions += 1
        progress.real_choices += real


@kernel
def _sees_free_slots(state: State) -> bool:
    """Write the slots that the router of the pool sees free, and return whether there is one: it is free, then."""
    if state.detail.rules.on == 1:
        see_free_slots(state)
    else:
        f = 0  # a pool has one front end
        state.free[:] = state.slots - state.sight.running[f]
    return bool(state.free.sum() > 0)


@kernel
def _decide(requests: Requests, setting: Setting, state: State) -> bool:
    """Decide for all that wait, or for one kind after the other, and carry it out; returns whether the outside has to.

    Parameters
    ----------
    state
        Changed in place.
    """
    progress = state.progress
    sight, f = state.sight, 0  # a pool has one front end
    kinds, count, k = 1, 0, 0
    if len(requests.allowed) > 0:
        kinds = list_kinds(
            state.pool[progress.pool_head : progress.pool_tail], requests.kind, state.kinds, state.marked
        )
    for turn in range(kinds):
        if not _sees_free_slots(state):
            return False
        if setting.code == EXTERNAL:
            return True
        pool = state.pool[progress.pool_head : progress.pool_tail]
        waiting = pool
        if len(requests.allowed) > 0:
            k = state.kinds[turn]
            if not close_others(k, requests.allowed, state.free):
                continue
            count = take_kind(k, pool, requests.kind, state.asked)
            waiting = state.asked[:count]
        state.scratch_load[:] = sight.load[f]
        state.scratch_running[:] = sight.running[f]
        reach = decide(
            setting.code,
            setting.parameters,
            Room(state.scratch_load, state.free, state.scratch_running, sight.own[f]),
            Waiting(waiting, state.size, state.reveal_step, requests.uniforms, progress.step),
            sight.turns[k],
            state.choice,
        )
        if len(requests.allowed) > 0:
            spread_choice(reach, count, pool, state.asked, state.choice)
            reach = pool.size
        carry_out_choice(reach, requests, setting, state)
    return False
