"""One decode step: all workers run to the barrier, every running request grows by a token, some end.

Order, that of the BF-IO authors' simulator: barrier loads and step time, clock, growth, completions
(simulator/setting.py names the two ways to read it). Growth adds `running` to the worker's load, and a request of
prompt s and output o takes s + o tokens with it, so no request is touched between its start and its end.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.simulation.step_time import seconds_of_step
from lbopt.kernels.simulation.tables import (
    ACTIVE,
    ADMITTED,
    FREE_SLOTS,
    NEXT,
    ON_WORKER,
    REAL_CHOICE,
    ROW,
    STEP,
    TOKENS,
    UNUSED_RECORD,
    WAITING,
    Rows,
    Setting,
    State,
)


@kernel
def take_step(setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: G + completions."""
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
    seconds = seconds_of_step(setting, load, running, heaviest, counters[ACTIVE])
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
