"""One decode step: all workers run to the barrier, every running request grows by a token, some end.

Order, that of the BF-IO authors' simulator: barrier loads and step time, clock, growth, completions
(simulator/setting.py names the two ways to read it). Growth adds `running` to the worker's load, and a request of
prompt s and output o takes s + o tokens with it, so no request is touched between its start and its end.
"""

import math

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.simulation.experts import count_experts, leave_experts
from lbopt.kernels.simulation.step_time import seconds_of_step
from lbopt.kernels.simulation.tables import (
    ACTIVE,
    ADMITTED,
    FREE_SLOTS,
    NEXT,
    ON_WORKER,
    REAL_CHOICE,
    REQUEST,
    ROW,
    STEP,
    TOKENS,
    UNUSED_RECORD,
    WAITING,
    Requests,
    Rows,
    Setting,
    State,
)


@kernel
def take_step(requests: Requests, setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: G + completions, and L * E a change where experts are counted."""
    counters = state.counters
    load, running = state.load, state.running
    barrier_loads, post_loads = rows.barrier_loads, rows.post_loads
    G = load.size
    r = counters[ROW]

    heaviest = 0
    over = 0
    for g in range(G):
        barrier_loads[r, g] = load[g]
        heaviest = max(heaviest, load[g])
        if setting.kv_capacity >= 0 and load[g] > setting.kv_capacity:
            over += 1
    if rows.running.shape[0] > 0:
        for g in range(G):
            rows.running[r, g] = running[g]
    if setting.expert_layers > 0:
        count_experts(setting.expert_layers, state.unused, state.experts_changed, state.experts)
        rows.experts[r] = _mean_of_busy(state)
    else:
        rows.experts[r] = math.nan
    seconds = seconds_of_step(setting, load, running, state.experts, heaviest, counters[ACTIVE])
    state.clock[0] += seconds
    rows.active[r] = counters[ACTIVE]
    rows.seconds[r] = seconds
    rows.clock[r] = state.clock[0]
    rows.over_capacity[r] = over
    rows.admitted[r] = counters[ADMITTED]
    rows.waiting[r] = counters[WAITING]
    rows.free_slots[r] = counters[FREE_SLOTS]
    rows.real_choice[r] = counters[REAL_CHOICE]
    counters[ADMITTED] = 0

    counters[STEP] += 1
    for g in range(G):
        load[g] += running[g]
    if setting.expert_layers > 0:
        _take_experts_along(requests, state)
    completed = _complete(counters, load, running, state.records, state.calendar)
    counters[ACTIVE] -= completed
    rows.completed[r] = completed
    for g in range(G):
        post_loads[r, g] = load[g]
    counters[ROW] = r + 1


@kernel
def _complete(counters: Ints, load: Ints, running: Ints, records: Ints, calendar: Ints) -> int:
    """Remove the requests that end with this step; returns how many."""
    bucket = counters[STEP] % calendar.size
    unused = counters[UNUSED_RECORD]
    record = calendar[bucket]
    calendar[bucket] = -1
    completed = 0
    while record >= 0:
        w = records[record, ON_WORKER]
        load[w] -= records[record, TOKENS]
        running[w] -= 1
        completed += 1
        following = records[record, NEXT]
        records[record, NEXT] = unused
        records[record, ON_WORKER] = -1
        unused = record
        record = following
    counters[UNUSED_RECORD] = unused
    return completed


@kernel
def _mean_of_busy(state: State) -> float:
    """Return the experts in use, mean over workers that run something; at least one does."""
    total, busy = 0.0, 0
    for g in range(state.running.size):
        if state.running[g] > 0:
            total += state.experts[g]
            busy += 1
    return total / busy


@kernel
def _take_experts_along(requests: Requests, state: State) -> None:
    """Let the requests that end with this step give up their experts; `_complete` removes them."""
    record = state.calendar[state.counters[STEP] % state.calendar.size]
    ended = state.scratch_running
    ended[:] = 0
    while record >= 0:
        w = state.records[record, ON_WORKER]
        ended[w] += 1
        row = requests.unused[requests.profile[state.records[record, REQUEST]]]
        leave_experts(row, w, state.running[w] - ended[w], state.unused, state.experts_changed)
        record = state.records[record, NEXT]
