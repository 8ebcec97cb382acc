"""The scheduler: binds a request on arrival, or lets all wait together and hands a batch to an instance that is ready.

An instance has *room* for tokens up to `chunk` and requests up to `capacity` per unit, less what it already has. It is
*ready* when it is healthy, has room, runs no pass, and a pass has ended since its last batch reached it. With
`while_left_over` it is from the end of the first pass that its last batch could be in, although what was left over runs
on. A batch is the
longest piece of the queue, the oldest first, before each of whose requests there is room (the last one may exceed the
chunk, and is carried over).

* pooled: the ready instance that has been free the longest, at once.
* spacing: one interval after the last dispatch, the next instance of the ring, when it is ready; after a second
  interval any that is ready, in ring order from there.
* tick: ticks lie on a lattice; one that passes while somebody waits allows one dispatch, when the next instance of the
  ring is ready; from the second such tick on any that is ready.
* of either timer, with `by_freedom`: the ready instance that has been free the longest instead of the next of the ring.
* anticipating: the instance whose pass to come starts the soonest, ahead of that; see `anticipation`.
* idle bypass: an arrival that finds an instance ready and with nothing to do is dispatched at once, with all who wait.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.allocation import allocate, chooses, place
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
from lbopt.kernels.prefill.cost import cost, least_cost
from lbopt.kernels.prefill.interval import next_tick, pass_ticks
from lbopt.kernels.prefill.sending import send
from lbopt.kernels.prefill.state import Requests, Room, Setting, State


@kernel
def bind(i: int, now: float, requests: Requests, setting: Setting, state: State) -> None:
    """Bind request i, which arrives now, to an instance and a unit of it, and send it there.

    Parameters
    ----------
    i, now
        Request, and the time in s.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    instances, backlog, length, hits = state.instances, state.backlog, requests.length, requests.hits
    policy = setting.policy
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
def dispatch(now: float, arrived: bool, requests: Requests, setting: Setting, state: State) -> None:
    """Hand batches to instances as long as the policy allows it, and set the timer for the next look.

    Parameters
    ----------
    now, arrived
        Time in s, and whether a request arrived now.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    progress = state.progress
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
            g = _free_longest(room, progress, state.ends, state.instances)
        else:
            by_tick = setting.policy == TICK
            g = _next_in_time(now, bypass, by_tick, setting.by_freedom, room, progress, state.ends, state.instances)
        bypass = False
        if g < 0:
            return
        progress.last_dispatch = now
        progress.ticks_waiting = 0
        progress.target = g + 1
        filled = ahead and (state.instances[g].closed == TOPPED_UP or progress.queued >= headroom(g, setting, state))
        none = _send_batch(g, now, requests, setting, state) == 0
        if ahead:
            if progress.queue_head < progress.queue_tail:
                state.instances[g].closed = FULL if filled else CLOSED
        elif none:
            if not pooled:
                progress.timer = now + progress.interval
            return
    progress.timer = np.inf


@kernel
def _next_in_time(
    now: float,
    bypass: bool,
    by_tick: bool,
    by_freedom: bool,
    room: Room,
    progress: Record,
    ends: Floats,
    instances: Records,
) -> int:
    """Return the instance that gets the next batch of a staggered policy now, or -1; sets the timer.

    Parameters
    ----------
    now, bypass
        Time in s, and whether an arrival may be dispatched at once.
    by_tick, by_freedom
        Which timer, and whether the instance that has been free the longest goes first.
    room
        See `Room`.
    progress
        As in `State`; changed in place.
    ends, instances
        As in `State`; read only.
    """
    interval = progress.interval
    if by_tick:
        pass_ticks(now, progress)
        if next_tick(progress) == now:
            progress.ticks_waiting += 1
            progress.tick_index += 1
        progress.timer = next_tick(progress)
        allowed, patience_over = progress.ticks_waiting >= 1, progress.ticks_waiting >= 2
    else:
        due = progress.last_dispatch + interval
        allowed, patience_over = now >= due, now >= due + interval
        if not allowed:
            progress.timer = due
        elif not patience_over:
            progress.timer = due + interval
    if (progress.idle == 0 and room.while_left_over == 0) or progress.healthy == 0:
        return -1
    if bypass:
        g = _first_ready(True, room, progress, ends, instances)
        if g >= 0:
            return g
    if not allowed:
        return -1
    if by_freedom:
        return _free_longest(room, progress, ends, instances)
    if patience_over:
        return _first_ready(False, room, progress, ends, instances)
    g = progress.target % progress.healthy
    return g if _is_ready(g, room, ends, instances) else -1


@kernel
def _is_ready(g: int, room: Room, ends: Floats, instances: Records) -> bool:
    """Tell whether a healthy instance is ready; a pass without requests has no tokens.

    Parameters
    ----------
    g, room
        Instance, and how much it may hold.
    ends, instances
        As in `State`; read only.
    """
    runs = ends[g] < np.inf
    if room.while_left_over != 0:
        free = instances[g].batch == 0 and (not runs or instances[g].computes > 0)
    else:
        free = instances[g].was_sent == 0 and not runs
    return free and instances[g].tokens < room.tokens and instances[g].on_device < room.requests


@kernel
def _free_longest(room: Room, progress: Record, ends: Floats, instances: Records) -> int:
    """Return the ready instance that became free first, which runs nothing before all others; -1 if there is none.

    Parameters
    ----------
    room
        See `Room`.
    progress, ends, instances
        As in `State`; read only.
    """
    chosen = -1
    if progress.idle > 0 or room.while_left_over != 0:
        for g in range(progress.healthy):
            if _is_ready(g, room, ends, instances) and (
                chosen < 0
                or (ends[g] == np.inf) > (ends[chosen] == np.inf)
                or (
                    (ends[g] == np.inf) == (ends[chosen] == np.inf)
                    and instances[g].free_since < instances[chosen].free_since
                )
            ):
                chosen = g
    return chosen


@kernel
def _first_ready(empty: bool, room: Room, progress: Record, ends: Floats, instances: Records) -> int:
    """Return the first ready instance in ring order, or -1 if there is none.

    Parameters
    ----------
    empty
        Whether it must have nothing on it.
    room
        See `Room`.
    progress, ends, instances
        As in `State`; read only.
    """
    healthy = progress.healthy
    for step in range(healthy):
        g = (progress.target + step) % healthy
        nobody = instances[g].on_device == 0 and ends[g] == np.inf
        if _is_ready(g, room, ends, instances) and (nobody or not empty):
            return g
    return -1


@kernel
def _send_batch(g: int, now: float, requests: Requests, setting: Setting, state: State) -> int:
    """Take a batch from the queue, allocate and send it; returns how many left the queue, which stays in order.

    Parameters
    ----------
    g, now
        Instance, and the time in s.
    requests, setting
        Of the run.
    state
        Changed in place.
    """
    progress, deferred = state.progress, state.deferred
    waiting, batch, chosen = state.waiting, state.batch, state.chosen
    length, hits, instance, latency = requests.length, requests.hits, state.instances[g], setting.latency
    rule, chunk = setting.allocation, setting.chunk
    head, tail = progress.queue_head, progress.queue_tail
    D = state.backlog.shape[1]
    left = D * chunk - instance.tokens
    places = D * setting.capacity - instance.on_device
    ahead = setting.policy == ANTICIPATING
    tops_up = ahead and instance.closed == TOPPED_UP
    if ahead:  # for the pass to come: what the running pass computes is none of its load
        places -= instance.on_the_way
        left = headroom(g, setting, state)
        for d in range(D):
            state.backlog[g, d] -= state.queues[g * D + d].in_pass
    whole = chooses(rule)
    size = 0
    while head + size < tail and (whole or (left > 0 and size < places)):
        i = waiting[head + size]
        batch[size] = i
        left -= least_cost(length, hits, i, g)
        size += 1
    turn, load = instance.placed_in_turn, state.backlog[g]
    parameters, key = setting.parameters, state.key
    allocate(rule, parameters, length, hits, deferred, batch[:size], g, turn, chunk, load, tops_up, key, chosen)
    if ahead:
        for d in range(D):
            load[d] += state.queues[g * D + d].in_pass
    first_kept = head + size
    for k in range(size - 1, -1, -1):
        if chosen[k] == KEEP:
            deferred[batch[k]] += not tops_up
            first_kept -= 1
            waiting[first_kept] = batch[k]
    progress.queue_head = first_kept
    for k in range(size):
        i = batch[k]
        if chosen[k] != KEEP:
            progress.queued -= length[i]
        if chosen[k] >= 0:
            send(i, g, chosen[k], cost(length, hits, i, g, chosen[k]), now, latency, state)
        elif chosen[k] == REFUSE:
            progress.refused += 1
            progress.unfinished -= 1
            progress.not_begun -= 1
    return first_kept - head
