"""The loop over moments: times at which anything happens.

In every moment, in this order: passes end; the number of healthy instances changes; requests reach their instance;
requests arrive and are bound, refused or queued; the scheduler hands out batches; passes start. So who comes at the
very time of a start is in that pass, and an instance whose pass ends can be topped up before the next one begins.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import LAST_IMMEDIATE, TICK
from lbopt.kernels.prefill.instances import end_pass, start_pass
from lbopt.kernels.prefill.interval import measure_pass, recompute
from lbopt.kernels.prefill.scheduler import bind, dispatch
from lbopt.kernels.prefill.sending import deliver
from lbopt.kernels.prefill.tables import (
    CHANGE,
    COMING,
    ENDS,
    FINISHED,
    HEALTHY,
    IDLE,
    IS_TOUCHED,
    MOMENTS_LEFT,
    NEXT_CHANGE,
    NEXT_END,
    NEXT_REACH,
    NOT_BEGUN,
    NOW,
    PAUSED,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REFUSED,
    ROW,
    ROWS_FULL,
    STUCK,
    TIMER,
    TOUCHED,
    UNFINISHED,
    Passes,
    Requests,
    Setting,
    State,
)


@kernel
def run(requests: Requests, setting: Setting, state: State, passes: Passes) -> int:
    """Run until all requests are finished or refused; returns why it came back (FINISHED, ROWS_FULL, PAUSED, STUCK).

    Called again it goes on where it was; the caller empties the rows (ROW, PASSES) in between.
    """
    counters, clock, instances, touched = state.counters, state.clock, state.instances, state.touched
    arrival, waiting, queue_limit = requests.arrival, state.waiting, setting.queue_limit
    N, n, rows = instances.shape[0], arrival.size, passes.times.shape[0]
    latency, by_tick, immediate = setting.latency, setting.policy == TICK, setting.policy <= LAST_IMMEDIATE
    looks = by_tick or setting.while_left_over  # although no instance is idle
    while counters[UNFINISHED] > 0:
        if counters[ROW] + N > rows:
            return ROWS_FULL
        if counters[MOMENTS_LEFT] == 0:
            return PAUSED
        counters[MOMENTS_LEFT] -= 1
        now = min(min(clock[NEXT_END], clock[NEXT_REACH]), min(clock[NEXT_CHANGE], clock[TIMER]))
        if counters[COMING] < n:
            now = min(now, arrival[counters[COMING]])
        if now == np.inf:
            return STUCK
        clock[NOW] = now
        counters[TOUCHED] = 0
        if clock[NEXT_END] <= now:
            _end_passes(now, setting, state)
        if clock[NEXT_CHANGE] <= now:
            _change_fleet(now, setting, state)
        if clock[NEXT_REACH] <= now:
            deliver(now, latency, state)
        arrived = False
        while counters[COMING] < n and arrival[counters[COMING]] <= now:
            i = counters[COMING]
            counters[COMING] += 1
            if counters[NOT_BEGUN] >= queue_limit:
                counters[REFUSED] += 1
                counters[UNFINISHED] -= 1
                continue
            counters[NOT_BEGUN] += 1
            if immediate:
                bind(i, now, requests, setting, state)
            else:
                waiting[counters[QUEUE_TAIL]] = i
                counters[QUEUE_TAIL] += 1
                arrived = True
        if counters[QUEUE_HEAD] < counters[QUEUE_TAIL]:
            if counters[IDLE] > 0 or looks:
                dispatch(now, arrived, requests, setting, state)
            else:
                clock[TIMER] = np.inf  # the next end of a pass brings the next look
        for k in range(counters[TOUCHED]):
            instances[touched[k], IS_TOUCHED] = 0
            start_pass(touched[k], now, setting, state, passes)
    return FINISHED


@kernel
def _end_passes(now: float, setting: Setting, state: State) -> None:
    """End all passes that end now, in the order of the instances."""
    clocks = state.clocks
    measured = state.window.size > 0
    nearest = np.inf
    for g in range(clocks.shape[0]):
        if clocks[g, ENDS] <= now:
            seconds = end_pass(g, now, state)
            if measured and seconds >= 0:
                measure_pass(seconds, now, setting, state)
        else:
            nearest = min(nearest, clocks[g, ENDS])
    state.clock[NEXT_END] = nearest


@kernel
def _change_fleet(now: float, setting: Setting, state: State) -> None:
    """Change the number of healthy instances, and the interval with it."""
    counters, clock, change_at = state.counters, state.clock, setting.change_at
    while clock[NEXT_CHANGE] <= now:
        counters[HEALTHY] = setting.change_to[counters[CHANGE]]
        counters[CHANGE] += 1
        clock[NEXT_CHANGE] = change_at[counters[CHANGE]] if counters[CHANGE] < change_at.size else np.inf
        recompute(now, setting, counters, clock)
