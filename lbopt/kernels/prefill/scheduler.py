"""The scheduler: binds a request on arrival, or lets all wait together and hands a batch to an instance that is ready.

An instance is *ready* when it is healthy, runs no pass and nothing is on the way to it. A batch is the longest piece of
the queue, the oldest first, before each of whose requests the instance has room: tokens up to `chunk` and requests up
to `capacity` per unit, less what it already has (the last one may exceed the chunk, and is carried over).

* pooled: the ready instance that has been free the longest, at once.
* spacing: one interval after the last dispatch, the next instance of the ring, when it is ready; after a second
  interval any that is ready, in ring order from there.
* tick: ticks lie on a lattice; one that passes while somebody waits allows one dispatch, when the next instance of the
  ring is ready; from the second such tick on any that is ready.
* idle bypass: an arrival that finds an instance ready and with nothing to do is dispatched at once, with all who wait.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.allocation import allocate, cost, defers, least_cost
from lbopt.kernels.prefill.codes import JSQ, POOLED, RANDOM, ROUND_ROBIN, TICK
from lbopt.kernels.prefill.instances import reach
from lbopt.kernels.prefill.interval import next_tick, pass_ticks
from lbopt.kernels.prefill.tables import (
    HEALTHY,
    IDLE,
    INTERVAL,
    LAST_DISPATCH,
    QUEUE_HEAD,
    QUEUE_TAIL,
    TARGET,
    TICK_INDEX,
    TICKS_WAITING,
    TIMER,
    TURN,
    WAY_TAIL,
    Requests,
    Setting,
    State,
)


@kernel
def choose_instance(i: int, requests: Requests, setting: Setting, state: State) -> int:
    """Return the instance of request i under a policy that binds on arrival; ties go to the lowest number."""
    N = state.ends.size
    if setting.policy == RANDOM:
        return int(requests.uniforms[i] * N)
    if setting.policy == ROUND_ROBIN:
        g = state.counters[TURN] % N
        state.counters[TURN] += 1
        return g
    chosen, least = 0, np.int64(2**62)
    for g in range(N):
        here = state.outstanding[g] if setting.policy == JSQ else state.backlog[g].sum()
        if here < least:
            chosen, least = g, here
    return chosen


@kernel
def hand_over(batch_size: int, g: int, now: float, requests: Requests, setting: Setting, state: State) -> int:
    """Allocate the first `batch_size` of `State.batch` to units of instance g and send them; returns how many went."""
    batch = state.batch[:batch_size]
    allocate(setting.allocation, requests, batch, g, state.backlog[g], state.turn, state.key, state.chosen)
    sent = 0
    for k in range(batch_size):
        i = batch[k]
        if state.chosen[k] < 0:
            state.deferred[i] += 1
            continue
        sent += 1
        state.instance[i] = g
        state.unit[i] = state.chosen[k]
        state.left[i] = cost(requests, i, g, state.chosen[k])
        state.dispatched[i] = now
        state.outstanding[g] += 1
        if setting.latency > 0:
            state.on_the_way[state.counters[WAY_TAIL]] = i
            state.counters[WAY_TAIL] += 1
            state.coming[g] += 1
        else:
            reach(i, state)
    return sent


@kernel
def dispatch(now: float, arrived: bool, requests: Requests, setting: Setting, state: State) -> None:
    """Hand batches to instances as long as the policy allows it, and set the timer for the next look."""
    counters = state.counters
    clock = state.clock
    bypass = setting.idle_bypass and arrived
    while counters[QUEUE_HEAD] < counters[QUEUE_TAIL]:
        clock[TIMER] = np.inf
        g = _next_instance(now, bypass, setting, state)
        bypass = False
        if g < 0:
            return
        clock[LAST_DISPATCH] = now
        counters[TICKS_WAITING] = 0
        counters[TARGET] = g + 1
        if _send_batch(g, now, requests, setting, state) == 0:
            if setting.policy != POOLED:
                clock[TIMER] = now + clock[INTERVAL]
            return
    clock[TIMER] = np.inf


@kernel
def _next_instance(now: float, bypass: bool, setting: Setting, state: State) -> int:
    """Return the instance that gets the next batch now, or -1; sets the timer."""
    counters = state.counters
    clock = state.clock
    if setting.policy == POOLED:
        return _free_longest(state)
    interval = clock[INTERVAL]
    if setting.policy == TICK:
        pass_ticks(now, state)
        if next_tick(state) == now:
            counters[TICKS_WAITING] += 1
            counters[TICK_INDEX] += 1
        clock[TIMER] = next_tick(state)
        allowed, patience_over = counters[TICKS_WAITING] >= 1, counters[TICKS_WAITING] >= 2
    else:
        due = clock[LAST_DISPATCH] + interval
        allowed, patience_over = now >= due, now >= due + interval
        if not allowed:
            clock[TIMER] = due
        elif not patience_over:
            clock[TIMER] = due + interval
    if counters[IDLE] == 0 or counters[HEALTHY] == 0:
        return -1
    if bypass:
        g = _first_ready(True, state)
        if g >= 0:
            return g
    if not allowed:
        return -1
    if patience_over:
        return _first_ready(False, state)
    g = counters[TARGET] % counters[HEALTHY]
    return g if _is_ready(g, state) else -1


@kernel
def _is_ready(g: int, state: State) -> bool:
    """Tell whether a healthy instance is ready."""
    return state.ends[g] == np.inf and state.coming[g] == 0


@kernel
def _free_longest(state: State) -> int:
    """Return the ready instance that became free first; -1 if none is ready."""
    chosen = -1
    if state.counters[IDLE] > 0:
        for g in range(state.counters[HEALTHY]):
            if _is_ready(g, state) and (chosen < 0 or state.free_since[g] < state.free_since[chosen]):
                chosen = g
    return chosen


@kernel
def _first_ready(empty: bool, state: State) -> int:
    """Return the first ready instance in ring order, if `empty` one with nothing on it; -1 if there is none."""
    healthy = state.counters[HEALTHY]
    for step in range(healthy):
        g = (state.counters[TARGET] + step) % healthy
        if _is_ready(g, state) and not (empty and state.on_device[g] > 0):
            return g
    return -1


@kernel
def _send_batch(g: int, now: float, requests: Requests, setting: Setting, state: State) -> int:
    """Take a batch from the queue and hand it over; who is deferred stays in the queue, in order."""
    counters = state.counters
    head, tail = counters[QUEUE_HEAD], counters[QUEUE_TAIL]
    D = state.backlog.shape[1]
    room = D * setting.chunk - state.backlog[g].sum()
    places = D * setting.capacity - state.on_device[g]
    whole = defers(setting.allocation)
    size = 0
    while head + size < tail and (whole or (room > 0 and size < places)):
        i = state.waiting[head + size]
        state.batch[size] = i
        if not whole:
            room -= least_cost(requests, i, g)
        size += 1
    sent = hand_over(size, g, now, requests, setting, state)
    if sent < size:
        place = head + size
        for k in range(size - 1, -1, -1):
            if state.chosen[k] < 0:
                place -= 1
                state.waiting[place] = state.batch[k]
    counters[QUEUE_HEAD] = head + sent
    return sent
