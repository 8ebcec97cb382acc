"""One decode step: all workers run to the barrier, every running request grows by a token, some end.

Order, that of the BF-IO authors' simulator: barrier loads and step time, clock, growth, completions
(simulator/setting.py names the two ways to read it). Growth adds `running` to the worker's load, and a request of
prompt s and output o takes s + o tokens with it, so no request is touched between its start and its end.
"""

import math

from lbopt.kernels.arrays import Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.books import strike
from lbopt.kernels.simulation.experts import count_experts, leave_experts
from lbopt.kernels.simulation.state import (
    Requests,
    Rows,
    Setting,
    State,
)
from lbopt.kernels.simulation.step_time import seconds_of_step


@kernel
def take_step(requests: Requests, setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: G + completions, and L * E a change where experts are counted.

    Parameters
    ----------
    requests, setting
        Of the run.
    state
        Changed in place.
    rows
        Row ``state.progress.row`` is written.
    """
    progress = state.progress
    load, running = state.load, state.running
    barrier_loads, post_loads = rows.barrier_loads, rows.post_loads
    G = load.size
    r = progress.row

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
        count_experts(
            setting.expert_layers,
            state.unused,
            state.experts_changed,
            state.experts,
            state.experts_known_of,
            state.experts_known_terms,
        )
        rows.experts[r] = _mean_of_busy(state)
    else:
        rows.experts[r] = math.nan
    seconds = seconds_of_step(setting, load, running, state.experts, heaviest, progress.active)
    progress.clock += seconds
    rows.active[r] = progress.active
    rows.seconds[r] = seconds
    rows.clock[r] = progress.clock
    rows.over_capacity[r] = over
    write_decision(progress, rows)

    progress.step += 1
    for g in range(G):
        load[g] += running[g]
    if setting.expert_layers > 0:
        _take_experts_along(requests, state)
    if state.sight.books.size > 0:
        _strike_from_books(requests, setting, state)
    completed = _complete(progress, load, running, state.endings, state.calendar)
    progress.active -= completed
    rows.completed[r] = completed
    for g in range(G):
        post_loads[r, g] = load[g]
    progress.row = r + 1


@kernel
def write_decision(progress: Record, rows: Rows) -> None:
    """Write what was noted of the decision into the row of the step that follows it.

    Parameters
    ----------
    progress
        As in `State`; what was admitted is counted anew from here.
    rows
        Row ``progress.row`` is written.
    """
    r = progress.row
    rows.admitted[r] = progress.admitted
    rows.waiting[r] = progress.waiting
    rows.free_slots[r] = progress.free_slots
    rows.real_choice[r] = progress.real_choice
    progress.admitted = 0


@kernel
def _complete(progress: Record, load: Ints, running: Ints, endings: Records, calendar: Ints) -> int:
    """Remove the requests that end with this step; returns how many.

    Parameters
    ----------
    load, running
        int64 (G,), tokens and requests of each worker; changed in place.
    progress, endings, calendar
        As in `State`; changed in place.
    """
    bucket = progress.step % calendar.size
    unused = progress.unused_ending
    e = calendar[bucket]
    calendar[bucket] = -1
    completed = 0
    while e >= 0:
        ending = endings[e]
        w = ending.worker
        load[w] -= ending.tokens
        running[w] -= 1
        completed += 1
        following = ending.following
        ending.following = unused
        ending.worker = -1
        unused = e
        e = following
    progress.unused_ending = unused
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
    e = state.calendar[state.progress.step % state.calendar.size]
    ended = state.scratch_running
    ended[:] = 0
    while e >= 0:
        ending = state.endings[e]
        w = ending.worker
        ended[w] += 1
        row = requests.unused[requests.profile[ending.request]]
        leave_experts(row, w, state.running[w] - ended[w], state.unused, state.experts_changed)
        e = ending.following


@kernel
def _strike_from_books(requests: Requests, setting: Setting, state: State) -> None:
    """Strike the requests that end with this step from the books of the front ends that sent them."""
    e = state.calendar[state.progress.step % state.calendar.size]
    while e >= 0:
        ending = state.endings[e]
        strike(ending.request, ending.worker, setting.code, requests.prompt, state.sight.books)
        e = ending.following
