"""The loop over moments: times at which anything happens.

In every moment, in this order: passes end; the number of healthy instances changes; requests reach their instance;
requests arrive and are bound, refused or queued; the scheduler hands out batches; passes start. So who comes at the
very time of a start is in that pass, and an instance whose pass ends can be topped up before the next one begins.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import LAST_IMMEDIATE
from lbopt.kernels.prefill.instances import end_pass, reach, start_pass
from lbopt.kernels.prefill.interval import measure_pass, recompute
from lbopt.kernels.prefill.scheduler import choose_instance, dispatch, hand_over
from lbopt.kernels.prefill.tables import (
    CHANGE,
    COMING,
    FINISHED,
    HEALTHY,
    MOMENTS_LEFT,
    NEXT_END,
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
    WAY_HEAD,
    WAY_TAIL,
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
    counters = state.counters
    clock = state.clock
    N = state.ends.size
    immediate = setting.policy <= LAST_IMMEDIATE
    while counters[UNFINISHED] > 0:
        if counters[ROW] + N > passes.start.size:
            return ROWS_FULL
        if counters[MOMENTS_LEFT] == 0:
            return PAUSED
        counters[MOMENTS_LEFT] -= 1
        now = _next_moment(requests, setting, state)
        if now == np.inf:
            return STUCK
        clock[NOW] = now
        counters[TOUCHED] = 0
        if clock[NEXT_END] <= now:
            _end_passes(now, setting, state)
        while counters[CHANGE] < setting.change_at.size and setting.change_at[counters[CHANGE]] <= now:
            counters[HEALTHY] = setting.change_to[counters[CHANGE]]
            counters[CHANGE] += 1
            recompute(now, setting, state)
        while counters[WAY_HEAD] < counters[WAY_TAIL] and _reaches(setting, state) <= now:
            i = state.on_the_way[counters[WAY_HEAD]]
            counters[WAY_HEAD] += 1
            state.coming[state.instance[i]] -= 1
            reach(i, state)
        arrived = _take_arrivals(now, immediate, requests, setting, state)
        if counters[QUEUE_HEAD] < counters[QUEUE_TAIL]:
            dispatch(now, arrived, requests, setting, state)
        for k in range(counters[TOUCHED]):
            g = state.touched[k]
            state.is_touched[g] = 0
            start_pass(g, now, setting, state, passes)
    return FINISHED


@kernel
def _reaches(setting: Setting, state: State) -> float:
    """Return when the request that is on the way for the longest time reaches its instance."""
    return state.dispatched[state.on_the_way[state.counters[WAY_HEAD]]] + setting.latency


@kernel
def _next_moment(requests: Requests, setting: Setting, state: State) -> float:
    counters = state.counters
    now = min(state.clock[NEXT_END], state.clock[TIMER])
    if counters[COMING] < requests.arrival.size:
        now = min(now, requests.arrival[counters[COMING]])
    if counters[WAY_HEAD] < counters[WAY_TAIL]:
        now = min(now, _reaches(setting, state))
    if counters[CHANGE] < setting.change_at.size:
        now = min(now, setting.change_at[counters[CHANGE]])
    return now


@kernel
def _end_passes(now: float, setting: Setting, state: State) -> None:
    """End all passes that end now, in the order of the instances."""
    nearest = np.inf
    for g in range(state.ends.size):
        if state.ends[g] <= now:
            seconds = end_pass(g, now, state)
            if seconds >= 0:
                measure_pass(seconds, now, setting, state)
        else:
            nearest = min(nearest, state.ends[g])
    state.clock[NEXT_END] = nearest


@kernel
def _take_arrivals(now: float, immediate: bool, requests: Requests, setting: Setting, state: State) -> bool:
    """Bind, refuse or queue all who arrive now; tells whether anybody was queued."""
    counters = state.counters
    arrived = False
    while counters[COMING] < requests.arrival.size and requests.arrival[counters[COMING]] <= now:
        i = counters[COMING]
        counters[COMING] += 1
        if counters[NOT_BEGUN] >= setting.queue_limit:
            counters[REFUSED] += 1
            counters[UNFINISHED] -= 1
            continue
        counters[NOT_BEGUN] += 1
        if immediate:
            state.batch[0] = i
            hand_over(1, choose_instance(i, requests, setting, state), now, requests, setting, state)
        else:
            state.waiting[counters[QUEUE_TAIL]] = i
            counters[QUEUE_TAIL] += 1
            arrived = True
    return arrived
