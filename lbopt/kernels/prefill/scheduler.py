"""The scheduler: binds a request on arrival, or lets all wait together and hands a batch to an instance that is ready.

An instance has *room* for tokens up to `chunk` and requests up to `capacity` per unit, less what it already has. It is
*ready* when it is healthy, has room, runs no pass, and a pass has ended since its last batch reached it. With
`while_left_over` it is from the end of the first pass that its last batch could be in, although what was left over runs
on. A batch is the longest piece of the queue, the oldest first, before each of whose requests there is room (the last
one may exceed the chunk, and is carried over).

* pooled: the ready instance that has been free the longest, at once.
* spacing: one interval after the last dispatch, the next instance of the ring, when it is ready; after a second
  interval any that is ready, in ring order from there.
* tick: ticks lie on a lattice; one that passes while a request waits allows one dispatch, when the next instance of the
  ring is ready; from the second such tick on any that is ready.
* of either timer, with `by_freedom`: the ready instance that has been free the longest instead of the next of the ring.
* anticipating: the instance whose pass to come starts the soonest, ahead of that; see `anticipation`.
* idle bypass: an arrival that finds an instance ready and with nothing to do is dispatched at once, with all who wait.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill import rules
from lbopt.kernels.prefill.allocation import Batch, allocate, chooses, cost, least_cost, place
from lbopt.kernels.prefill.anticipation import headroom, reopen, soonest
from lbopt.kernels.prefill.codes import (
    ANTICIPATING,
    CLOSED,
    FULL,
    JSQ,
    KEEP,
    POOLED,
    RANDOM,
    REFUSE,
    ROUND_ROBIN,
    TICK,
    TOPPED_UP,
)
from lbopt.kernels.prefill.instances import send
from lbopt.kernels.prefill.rules import Lattice
from lbopt.kernels.prefill.state import Requests, Room, Setting, State

interval_of, spaced, goes_before = kernel(rules.interval_of), kernel(rules.spaced), kernel(rules.goes_before)
next_tick, passed, ticked = kernel(rules.next_tick), kernel(rules.passed), kernel(rules.ticked)


@kernel
def measure_pass(seconds: float, now: float, setting: Setting, state: State) -> None:
    """Take a pass time into the window, and set the interval anew from the mean of the window."""
    window, progress = state.window, state.progress
    window[progress.measured % window.size] = seconds
    progress.measured += 1
    held = min(window.size, progress.measured)
    total = 0.0
    for k in range(held):
        total += window[k]
    progress.mean_pass = total / held
    recompute(now, setting, progress)


@kernel
def recompute(now: float, setting: Setting, progress: Record) -> None:
    """Set the interval from mean pass and healthy instances; without any of these it stays as it is.

    A new one counts at once under spacing, and from the next tick on under ticks.
    """
    if setting.fixed_interval >= 0 or progress.healthy == 0:
        return
    interval = interval_of(progress.mean_pass, setting.latency, progress.healthy)
    if interval != progress.interval:
        progress.tick_anchor = next_tick(_passed_ticks(now, progress), progress.interval)
        progress.tick_index = 0
        progress.interval = interval


@kernel
def _passed_ticks(now: float, progress: Record) -> Lattice:
    return passed(Lattice(progress.tick_anchor, progress.tick_index, progress.ticks_waiting), now, progress.interval)


@kernel
def bind(i: int, now: float, requests: Requests, setting: Setting, state: State) -> None:
    """Bind request i, which arrives now, to an instance and a unit of it, and send it there."""
    instances, backlog, policy = state.instances, state.backlog, setting.policy
    length, hits = requests.length, requests.hits
    N = instances.size
    if policy == RANDOM:
        g = int(requests.uniforms[i] * N)
    elif policy == ROUND_ROBIN:
        g = state.progress.turn % N
        state.progress.turn += 1
    else:
        g = 0
        by_requests = policy == JSQ
        for other in range(1, N):
            if by_requests:
                fewer = instances[other].outstanding < instances[g].outstanding
            else:
                fewer = instances[other].tokens < instances[g].tokens
            if fewer:
                g = other
    d = place(setting.allocation, instances[g].placed_in_turn, backlog[g])
    tokens = cost(length, hits, i, g, d)
    backlog[g, d] += tokens
    send(i, g, d, tokens, now, setting.latency, state)


@kernel
def dispatch(now: float, arrived: bool, setting: Setting, state: State, batch: Batch) -> None:
    """Hand batches to instances as long as the policy allows it, and set the timer for the next look.

    Parameters
    ----------
    now, arrived
        Time in s, and whether a request arrived now.
    setting
        Of the run.
    state, batch
        Changed in place.
    """
    progress, ends, instances = state.progress, state.ends, state.instances
    pooled, ahead = setting.policy == POOLED, setting.policy == ANTICIPATING
    D = state.backlog.shape[1]
    room = Room(D * setting.chunk, D * setting.capacity, int(setting.while_left_over))
    bypass = setting.idle_bypass and arrived
    if ahead and arrived:
        reopen(state)
    while progress.queue_head < progress.queue_tail:
        progress.timer = np.inf
        if ahead:
            g = soonest(now, setting, state)
        elif pooled:
            g = _first_ready(True, False, room, progress, ends, instances)
        else:
            g = _next_in_time(now, bypass, room, setting, state)
        bypass = False
        if g < 0:
            return
        progress.last_dispatch = now
        progress.ticks_waiting = 0
        progress.target = g + 1
        filled = ahead and (instances[g].closed == TOPPED_UP or progress.queued >= headroom(g, setting, state))
        none = _send_batch(g, now, setting, state, batch) == 0
        if ahead:
            if progress.queue_head < progress.queue_tail:
                instances[g].closed = FULL if filled else CLOSED
        elif none:
            if not pooled:
                progress.timer = now + progress.interval
            return
    progress.timer = np.inf


@kernel
def _next_in_time(now: float, bypass: bool, room: Room, setting: Setting, state: State) -> int:
    """Return the instance that gets the next batch of a staggered policy now, or -1; sets the timer.

    With `bypass` an arrival may be dispatched at once.
    """
    progress, ends, instances = state.progress, state.ends, state.instances
    if setting.policy == TICK:
        lattice = ticked(_passed_ticks(now, progress), now, progress.interval)
        progress.tick_index, progress.ticks_waiting = lattice.tick, lattice.waited
        progress.timer = next_tick(lattice, progress.interval)
        allowed, patience_over = lattice.waited >= 1, lattice.waited >= 2
    else:
        due = progress.last_dispatch + progress.interval
        allowed, patience_over, progress.timer = spaced(now, due, progress.interval)
    if progress.healthy == 0:
        return -1
    if bypass:
        g = _first_ready(False, True, room, progress, ends, instances)
        if g >= 0:
            return g
    if not allowed:
        return -1
    if patience_over or setting.by_freedom:
        return _first_ready(setting.by_freedom, False, room, progress, ends, instances)
    g = progress.target % progress.healthy
    return g if _is_ready(g, room, ends, instances) else -1


@kernel
def _is_ready(g: int, room: Room, ends: Floats, instances: Records) -> bool:
    """Tell whether a healthy instance is ready; a pass without requests has no tokens."""
    runs = ends[g] < np.inf
    if room.while_left_over != 0:
        free = instances[g].batch == 0 and (not runs or instances[g].computes > 0)
    else:
        free = instances[g].was_sent == 0 and not runs
    return free and instances[g].tokens < room.tokens and instances[g].on_device < room.requests


@kernel
def _first_ready(by_freedom: bool, empty: bool, room: Room, progress: Record, ends: Floats, instances: Records) -> int:
    """Return the ready instance that goes first, or -1 if there is none.

    Parameters
    ----------
    by_freedom
        Whether that is the one that became free first, which runs nothing before all others, or the first in the ring.
    empty
        Whether it must have nothing on it.
    room, progress, ends, instances
        As in `State`; read only.
    """
    chosen = -1
    if progress.idle == 0 and room.while_left_over == 0:
        return chosen
    healthy = progress.healthy
    first = 0 if by_freedom else progress.target
    for step in range(healthy):
        g = (first + step) % healthy
        runs = ends[g] < np.inf
        if not _is_ready(g, room, ends, instances) or (empty and (runs or instances[g].on_device > 0)):
            continue
        if not by_freedom:
            return g
        if chosen < 0 or goes_before(
            runs, instances[g].free_since, ends[chosen] < np.inf, instances[chosen].free_since
        ):
            chosen = g
    return chosen


@kernel
def _send_batch(g: int, now: float, setting: Setting, state: State, batch: Batch) -> int:
    """Take a batch from the queue, allocate and send it; returns how many left the queue, which stays in order."""
    progress, waiting, instance, load = state.progress, state.waiting, state.instances[g], state.backlog[g]
    length, hits, deferred, shown, unit = batch.length, batch.hits, batch.deferred, batch.shown, batch.unit
    head, tail = progress.queue_head, progress.queue_tail
    D = load.size
    left = D * setting.chunk - instance.tokens
    places = D * setting.capacity - instance.on_device
    ahead = setting.policy == ANTICIPATING
    tops_up = ahead and instance.closed == TOPPED_UP
    if ahead:  # for the pass to come: what the running pass computes is none of its load
        places -= instance.on_the_way
        left = headroom(g, setting, state)
        for d in range(D):
            load[d] -= state.queues[g * D + d].in_pass
    whole = chooses(setting.allocation)
    size = 0
    while head + size < tail and (whole or (left > 0 and size < places)):
        i = waiting[head + size]
        shown[size] = i
        left -= least_cost(length, hits, i, g)
        size += 1
    allocate(batch, size, g, instance.placed_in_turn, setting.chunk, tops_up, load)
    if ahead:
        for d in range(D):
            load[d] += state.queues[g * D + d].in_pass
    first_kept = head + size
    for k in range(size - 1, -1, -1):
        if unit[k] == KEEP:
            deferred[shown[k]] += not tops_up
            first_kept -= 1
            waiting[first_kept] = shown[k]
    progress.queue_head = first_kept
    for k in range(size):
        i = shown[k]
        if unit[k] != KEEP:
            progress.queued -= length[i]
        if unit[k] >= 0:
            send(i, g, unit[k], cost(length, hits, i, g, unit[k]), now, setting.latency, state)
        elif unit[k] == REFUSE:
            progress.refused += 1
            progress.unfinished -= 1
            progress.not_begun -= 1
    return first_kept - head
