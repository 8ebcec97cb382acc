"""One decode step: its seconds, its experts, growth and ends.

Seconds of a step in its barrier form; `lbopt/hardware/step_time/barrier_form.py` is the readable twin.

How many different experts the requests of a worker use in a step.

Requests choose independently, so a step of worker g is expected to use sum_e (1 - prod_r (1 - p_r(e))) experts of a
layer. The logarithms of those products are kept for every worker and cell: a request adds its row when it starts and
takes it away when it ends, and the sum is made anew for workers that a request joined or left. Cost: L * E a change.

Most of that cost are the terms 1 - prod, and a request leaves those of experts that it never uses as they are. So terms
are kept with the logarithms that they are of, and computed where these have changed; they are summed anew in the same
order, so that the sum is the same to the last bit.

One decode step: all workers run to the barrier, every running request grows by a token, some end.

Order, that of the BF-IO authors' simulator: barrier loads and step time, clock, growth, completions
(simulator/setting.py names the two ways to read it). Growth adds `running` to the worker's load, and a request of
prompt s and output o takes s + o tokens with it, so no request is touched between its start and its end.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.books import strike
from lbopt.kernels.simulation.state import (
    Requests,
    Rows,
    Setting,
    State,
)


@kernel
def seconds_of_step(setting: Setting, load: Ints, running: Ints, experts: Floats, active: int) -> float:
    """Return the seconds of a step.

    Parameters
    ----------
    load, running
        int64 (G,), tokens and requests of each worker.
    experts
        float64 (G,), different experts of a layer that each worker uses.
    active
        Running requests of all workers.
    """
    if setting.seconds_of_running.size == 0 and setting.seconds_per_expert == 0:
        alone = setting.seconds_per_token * load.max()
    else:
        alone = _slowest(setting, load, running, experts)
    return setting.fixed_seconds + alone + seconds_together(setting, load, active)


@kernel
def seconds_together(setting: Setting, load: Ints, active: int) -> float:
    """Return what all workers do together in a step, s.

    Parameters
    ----------
    load
        int64 (G,), tokens of each worker.
    active
        Running requests of all workers.
    """
    together = 0.0
    if setting.seconds_per_mean_token > 0:
        total = 0
        for g in range(load.size):
            total += load[g]
        together = setting.seconds_per_mean_token * (total / load.size)
    if setting.seconds_of_active.size > 0:
        together += setting.seconds_of_active[active]
    return together


@kernel
def _slowest(setting: Setting, load: Ints, running: Ints, experts: Floats) -> float:
    """Return what the slowest worker needs by itself, s: it need not be the heaviest."""
    per_token, of_running, per_expert = (
        setting.seconds_per_token,
        setting.seconds_of_running,
        setting.seconds_per_expert,
    )
    slowest = 0.0
    for g in range(load.size):
        own = per_token * load[g]
        if of_running.size > 0:
            own += of_running[running[g]]
        slowest = max(slowest, own + per_expert * experts[g])
    return slowest


@kernel
def join_experts(row: NDArray[np.float32], w: int, state: State) -> None:
    """Let a request start on worker w.

    Parameters
    ----------
    row
        float32 (L * E,), log of the chance that a step of the request does not use each expert.
    """
    of_worker = state.unused[w]
    for c in range(row.size):
        of_worker[c] += row[c]
    state.experts_changed[w] = 1


@kernel
def leave_experts(row: NDArray[np.float32], w: int, left: int, state: State) -> None:
    """Let it end; without other requests the sums are zero again, and rounding is forgotten.

    Parameters
    ----------
    left
        Requests that still run on the worker.
    """
    of_worker = state.unused[w]
    if left == 0:
        of_worker[:] = 0.0
    else:
        for c in range(row.size):
            of_worker[c] -= row[c]
    state.experts_changed[w] = 1


@kernel
def count_experts(w: int, layers: int, state: State) -> None:
    """Bring the number of experts in use on worker w up to date."""
    if state.experts_changed[w] == 0:
        return
    now, of, terms = state.unused[w], state.experts_known_of[w], state.experts_known_terms[w]
    others = np.empty(now.size, np.int64)
    count = 0
    for c in range(now.size):  # apart from the loop below: whether a cell has changed is no branch here
        others[count] = c
        count += now[c] != of[c]
    for k in range(count):
        c = others[k]
        of[c] = now[c]
        terms[c] = math.expm1(now[c])
    total = 0.0
    for c in range(terms.size):
        total -= terms[c]
    state.experts[w] = total / layers
    state.experts_changed[w] = 0


@kernel
def take_step(requests: Requests, setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: G + completions, and L * E a change where experts are counted.

    Parameters
    ----------
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

    over = 0
    for g in range(G):
        barrier_loads[r, g] = load[g]
        if setting.kv_capacity >= 0 and load[g] > setting.kv_capacity:
            over += 1
    if rows.running.shape[0] > 0:
        for g in range(G):
            rows.running[r, g] = running[g]
    in_use = math.nan
    if setting.expert_layers > 0:
        for w in range(G):
            count_experts(w, setting.expert_layers, state)
        in_use = _mean_of_busy(state)
    active = progress.active
    seconds = seconds_of_step(setting, load, running, state.experts, active)

    progress.step += 1
    for g in range(G):
        load[g] += running[g]
    if setting.expert_layers > 0:
        _take_experts_along(requests, state)
    if state.sight.books.size > 0:
        _strike_from_books(requests, setting, state)
    completed = _complete(progress, load, running, state.endings, state.calendar)
    for g in range(G):
        post_loads[r, g] = load[g]
    rows.experts[r] = in_use
    end_row(active, completed, over, seconds, progress, rows)


@kernel
def end_row(active: int, completed: int, over: int, seconds: float, progress: Record, rows: Rows) -> None:
    """Let the clock go on, and write the row of the step with what was noted of the decision before it.

    Parameters
    ----------
    active, completed
        Requests that ran, and those of them that ended.
    over
        Workers above their capacity.
    """
    r = progress.row
    progress.clock += seconds
    progress.active -= completed
    rows.active[r] = active
    rows.completed[r] = completed
    rows.over_capacity[r] = over
    rows.seconds[r] = seconds
    rows.clock[r] = progress.clock
    rows.admitted[r] = progress.admitted
    rows.waiting[r] = progress.waiting
    rows.free_slots[r] = progress.free_slots
    rows.real_choice[r] = progress.real_choice
    progress.admitted = 0
    progress.row = r + 1


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
        leave_experts(row, w, state.running[w] - ended[w], state)
        e = ending.following


@kernel
def _strike_from_books(requests: Requests, setting: Setting, state: State) -> None:
    """Strike the requests that end with this step from the books of the front ends that sent them."""
    e = state.calendar[state.progress.step % state.calendar.size]
    while e >= 0:
        ending = state.endings[e]
        strike(ending.request, ending.worker, setting.code, requests.prompt, state.sight.books)
        e = ending.following
