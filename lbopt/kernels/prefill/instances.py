"""What happens on the instances: a request reaches its unit, a pass starts, a pass ends.

A pass locks the instance: each unit takes from its queue, the oldest first, up to `chunk` tokens and `capacity`
requests, and what comes later waits for a later pass. What exceeds the chunk stays at the head of the queue, so that it
goes on first in the next pass. All units wait for the fullest:

    seconds = base + per_token * (tokens of the fullest unit) + per_longest * (longest chunk of a request)
              + per_mean * (tokens of the instance / units).
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import BACK_TO_BACK
from lbopt.kernels.prefill.tables import (
    BATCH,
    BEGAN,
    COMPLETES,
    COMPUTES,
    ENDS,
    FIRST,
    FOLLOWING,
    FREE_SINCE,
    FULLEST,
    IDLE,
    IN_PASS,
    INSTANCE,
    IS_TOUCHED,
    LAST,
    LAST_PASS,
    LEFT,
    LONGEST,
    NEXT_END,
    NOT_BEGUN,
    OF_INSTANCE,
    ON_DEVICE,
    ON_THE_WAY,
    OUTSTANDING,
    PASS_REQUESTS,
    PASS_TOKENS,
    PASSES,
    ROW,
    RUNNING,
    SERVED_BY,
    STARTED,
    TOKENS,
    TOUCHED,
    UNFINISHED,
    UNIT,
    WAS_SENT,
    Passes,
    Setting,
    State,
)


@kernel
def touch(g: int, instances: Ints, touched: Ints, counters: Ints) -> None:
    """Note that instance g may start a pass at the end of this moment."""
    if instances[g, IS_TOUCHED] == 0:
        instances[g, IS_TOUCHED] = 1
        touched[counters[TOUCHED]] = g
        counters[TOUCHED] += 1


@kernel
def join_queue(i: int, D: int, records: Ints, queues: Ints, instances: Ints) -> None:
    """Let request i join the queue of its unit."""
    g = records[i, INSTANCE]
    u = g * D + records[i, UNIT]
    if queues[u, FIRST] < 0:
        queues[u, FIRST] = i
    else:
        records[queues[u, LAST], FOLLOWING] = i
    queues[u, LAST] = i
    instances[g, ON_DEVICE] += 1


@kernel
def start_pass(g: int, now: float, setting: Setting, state: State, passes: Passes) -> None:
    """Start a pass on instance g if it is free and somebody is there, or its engine does not ask for that."""
    clocks, instances = state.clocks, state.instances
    if clocks[g, ENDS] < np.inf or (instances[g, ON_DEVICE] == 0 and setting.engine != BACK_TO_BACK):
        return
    counters, clock, records, times, queues = state.counters, state.clock, state.records, state.times, state.queues
    counts, pass_times, of_unit = passes.counts, passes.times, passes.of_unit
    chunk, capacity = setting.chunk, setting.capacity
    D = queues.shape[0] // clocks.shape[0]
    row = counters[ROW]
    number = counters[PASSES] + row
    total = fullest = longest = served = completes = began = 0
    for d in range(D):
        u = g * D + d
        i = queues[u, FIRST]
        taken = count = 0
        while i >= 0 and taken < chunk and count < capacity:
            part = min(records[i, LEFT], chunk - taken)
            if records[i, SERVED_BY] == 0:
                times[i, BEGAN] = now
                began += 1
            records[i, SERVED_BY] += 1
            records[i, LEFT] -= part
            taken += part
            count += 1
            longest = max(longest, part)
            if records[i, LEFT] > 0:
                break
            records[i, LAST_PASS] = number
            completes += 1
            i = records[i, FOLLOWING]
        queues[u, FIRST] = i
        queues[u, IN_PASS] = taken
        if of_unit.size > 0:
            of_unit[row, d] = taken
        total += taken
        fullest = max(fullest, taken)
        served += count
    law = setting.base + setting.per_token * fullest + setting.per_longest * longest
    end = now + (law + setting.per_mean * (total / D))
    instances[g, ON_DEVICE] -= completes
    instances[g, COMPLETES] = completes
    instances[g, COMPUTES] = total
    instances[g, RUNNING] = number
    if instances[g, BATCH] == 1 and instances[g, ON_THE_WAY] == 0:
        instances[g, BATCH] = 2
    clocks[g, STARTED] = now
    clocks[g, ENDS] = end
    clock[NEXT_END] = min(clock[NEXT_END], end)
    counters[IDLE] -= 1
    counters[NOT_BEGUN] -= began
    counts[row, OF_INSTANCE] = g
    counts[row, PASS_TOKENS] = total
    counts[row, FULLEST] = fullest
    counts[row, LONGEST] = longest
    counts[row, PASS_REQUESTS] = served
    pass_times[row, 0] = now
    pass_times[row, 1] = end
    counters[ROW] = row + 1


@kernel
def end_pass(g: int, now: float, state: State) -> float:
    """End the pass of instance g; returns how long it took, negative if it was none (busy with nobody at first)."""
    clocks, instances, counters = state.clocks, state.instances, state.counters
    seconds = -1.0
    if instances[g, RUNNING] >= 0:
        backlog, queues = state.backlog, state.queues
        seconds = now - clocks[g, STARTED]
        D = backlog.shape[1]
        for d in range(D):
            backlog[g, d] -= queues[g * D + d, IN_PASS]
            queues[g * D + d, IN_PASS] = 0
        instances[g, TOKENS] -= instances[g, COMPUTES]
        instances[g, OUTSTANDING] -= instances[g, COMPLETES]
        counters[UNFINISHED] -= instances[g, COMPLETES]
    instances[g, RUNNING] = -1
    if instances[g, ON_THE_WAY] == 0:
        instances[g, WAS_SENT] = 0
    if instances[g, BATCH] == 2:
        instances[g, BATCH] = 0
    clocks[g, ENDS] = np.inf
    clocks[g, FREE_SINCE] = now
    counters[IDLE] += 1
    touch(g, instances, state.touched, counters)
    return seconds
