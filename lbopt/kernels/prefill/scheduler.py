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
* idle bypass: an arrival that finds an instance ready and with nothing to do is dispatched at once, with all who wait.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.allocation import allocate, chooses, cost, least_cost, place
from lbopt.kernels.prefill.codes import JSQ, KEEP, POOLED, RANDOM, REFUSE, ROUND_ROBIN, TICK
from lbopt.kernels.prefill.interval import next_tick, pass_ticks
from lbopt.kernels.prefill.sending import send
from lbopt.kernels.prefill.tables import (
    BATCH,
    COMPUTES,
    DEFERRED,
    ENDS,
    FREE_SINCE,
    HEALTHY,
    IDLE,
    INTERVAL,
    LAST_DISPATCH,
    NOT_BEGUN,
    ON_DEVICE,
    OUTSTANDING,
    PLACED_IN_TURN,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REFUSED,
    TARGET,
    TICK_INDEX,
    TICKS_WAITING,
    TIMER,
    TOKENS,
    TURN,
    UNFINISHED,
    WAS_SENT,
    Requests,
    Setting,
    State,
)


@kernel
def bind(i: int, now: float, requests: Requests, setting: Setting, state: State) -> None:
    """Bind request i, which arrives now, to an instance and a unit of it, and send it there."""
    instances, backlog, length, hits = state.instances, state.backlog, requests.length, requests.hits
    policy = setting.policy
    N = instances.shape[0]
    if policy == RANDOM:
        g = int(requests.uniforms[i] * N)
    elif policy == ROUND_ROBIN:
        g = state.counters[TURN] % N
        state.counters[TURN] += 1
    else:
        column = OUTSTANDING if policy == JSQ else TOKENS
        g = 0
        for other in range(1, N):
            if instances[other, column] < instances[g, column]:
                g = other
    d = place(setting.allocation, instances[g, PLACED_IN_TURN], backlog[g])
    tokens = cost(length, hits, i, g, d)
    backlog[g, d] += tokens
    send(i, g, d, tokens, now, setting.latency, state)


@kernel
def dispatch(now: float, arrived: bool, requests: Requests, setting: Setting, state: State) -> None:
    """Hand batches to instances as long as the policy allows it, and set the timer for the next look."""
    counters, clock = state.counters, state.clock
    pooled = setting.policy == POOLED
    D = state.backlog.shape[1]
    limits = (D * setting.chunk, D * setting.capacity, int(setting.while_left_over))
    bypass = setting.idle_bypass and arrived
    while counters[QUEUE_HEAD] < counters[QUEUE_TAIL]:
        clock[TIMER] = np.inf
        if pooled:
            g = _free_longest(limits, counters, state.clocks, state.instances)
        else:
            by_tick = setting.policy == TICK
            g = _next_in_time(
                now, bypass, by_tick, setting.by_freedom, limits, counters, clock, state.clocks, state.instances
            )
        bypass = False
        if g < 0:
            return
        clock[LAST_DISPATCH] = now
        counters[TICKS_WAITING] = 0
        counters[TARGET] = g + 1
        if _send_batch(g, now, requests, setting, state) == 0:
            if not pooled:
                clock[TIMER] = now + clock[INTERVAL]
            return
    clock[TIMER] = np.inf


@kernel
def _next_in_time(
    now: float,
    bypass: bool,
    by_tick: bool,
    by_freedom: bool,
    limits: tuple[int, int, int],
    counters: Ints,
    clock: Floats,
    clocks: Floats,
    instances: Ints,
) -> int:
    """Return the instance that gets the next batch of a staggered policy now, or -1; sets the timer."""
    interval = clock[INTERVAL]
    if by_tick:
        pass_ticks(now, counters, clock)
        if next_tick(counters, clock) == now:
            counters[TICKS_WAITING] += 1
            counters[TICK_INDEX] += 1
        clock[TIMER] = next_tick(counters, clock)
        allowed, patience_over = counters[TICKS_WAITING] >= 1, counters[TICKS_WAITING] >= 2
    else:
        due = clock[LAST_DISPATCH] + interval
        allowed, patience_over = now >= due, now >= due + interval
        if not allowed:
            clock[TIMER] = due
        elif not patience_over:
            clock[TIMER] = due + interval
    if (counters[IDLE] == 0 and limits[2] == 0) or counters[HEALTHY] == 0:
        return -1
    if bypass:
        g = _first_ready(True, limits, counters, clocks, instances)
        if g >= 0:
            return g
    if not allowed:
        return -1
    if by_freedom:
        return _free_longest(limits, counters, clocks, instances)
    if patience_over:
        return _first_ready(False, limits, counters, clocks, instances)
    g = counters[TARGET] % counters[HEALTHY]
    return g if _is_ready(g, limits, clocks, instances) else -1


@kernel
def _is_ready(g: int, limits: tuple[int, int, int], clocks: Floats, instances: Ints) -> bool:
    """Tell whether a healthy instance, which is full with so many tokens or requests, is ready.

    The third of `limits` is whether it may run what was left over; a pass in which nobody is has no tokens.
    """
    runs = clocks[g, ENDS] < np.inf
    if limits[2] != 0:
        free = instances[g, BATCH] == 0 and (not runs or instances[g, COMPUTES] > 0)
    else:
        free = instances[g, WAS_SENT] == 0 and not runs
    return free and instances[g, TOKENS] < limits[0] and instances[g, ON_DEVICE] < limits[1]


@kernel
def _free_longest(limits: tuple[int, int, int], counters: Ints, clocks: Floats, instances: Ints) -> int:
    """Return the ready instance that became free first, who runs nothing before all others; -1 if there is none."""
    chosen = -1
    if counters[IDLE] > 0 or limits[2] != 0:
        for g in range(counters[HEALTHY]):
            if _is_ready(g, limits, clocks, instances) and (
                chosen < 0
                or (clocks[g, ENDS] == np.inf) > (clocks[chosen, ENDS] == np.inf)
                or (
                    (clocks[g, ENDS] == np.inf) == (clocks[chosen, ENDS] == np.inf)
                    and clocks[g, FREE_SINCE] < clocks[chosen, FREE_SINCE]
                )
            ):
                chosen = g
    return chosen


@kernel
def _first_ready(empty: bool, limits: tuple[int, int, int], counters: Ints, clocks: Floats, instances: Ints) -> int:
    """Return the first ready instance in ring order, if `empty` one with nothing on it; -1 if there is none."""
    healthy = counters[HEALTHY]
    for step in range(healthy):
        g = (counters[TARGET] + step) % healthy
        nobody = instances[g, ON_DEVICE] == 0 and clocks[g, ENDS] == np.inf
        if _is_ready(g, limits, clocks, instances) and (nobody or not empty):
            return g
    return -1


@kernel
def _send_batch(g: int, now: float, requests: Requests, setting: Setting, state: State) -> int:
    """Take a batch from the queue, allocate and send it; returns how many left the queue, which stays in order."""
    counters, waiting, batch, chosen, records = state.counters, state.waiting, state.batch, state.chosen, state.records
    length, hits, instances, latency = requests.length, requests.hits, state.instances, setting.latency
    rule, chunk = setting.allocation, setting.chunk
    head, tail = counters[QUEUE_HEAD], counters[QUEUE_TAIL]
    D = state.backlog.shape[1]
    room = D * chunk - instances[g, TOKENS]
    places = D * setting.capacity - instances[g, ON_DEVICE]
    whole = chooses(rule)
    size = 0
    while head + size < tail and (whole or (room > 0 and size < places)):
        i = waiting[head + size]
        batch[size] = i
        room -= least_cost(length, hits, i, g)
        size += 1
    turn, load = instances[g, PLACED_IN_TURN], state.backlog[g]
    allocate(rule, setting.parameters, length, hits, records, batch[:size], g, turn, chunk, load, state.key, chosen)
    first_kept = head + size
    for k in range(size - 1, -1, -1):
        if chosen[k] == KEEP:
            records[batch[k], DEFERRED] += 1
            first_kept -= 1
            waiting[first_kept] = batch[k]
    counters[QUEUE_HEAD] = first_kept
    for k in range(size):
        i = batch[k]
        if chosen[k] >= 0:
            send(i, g, chosen[k], cost(length, hits, i, g, chosen[k]), now, latency, state)
        elif chosen[k] == REFUSE:
            counters[REFUSED] += 1
            counters[UNFINISHED] -= 1
            counters[NOT_BEGUN] -= 1
    return first_kept - head
