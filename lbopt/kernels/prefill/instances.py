"""What happens on the instances: a request reaches its unit, a pass starts, a pass ends.

A pass locks the instance: each unit takes from its queue, the oldest first, up to `chunk` tokens and `capacity`
requests, and what comes later waits for a later pass. What exceeds the chunk stays at the head of the queue, so that it
goes on first in the next pass. All units wait for the fullest:

    seconds = base + per_token * (tokens of the fullest unit) + per_longest * (longest chunk of a request).
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.codes import BACK_TO_BACK
from lbopt.kernels.prefill.tables import (
    IDLE,
    NEXT_END,
    NOT_BEGUN,
    PASSES,
    ROW,
    TOUCHED,
    UNFINISHED,
    Passes,
    Setting,
    State,
)


@kernel
def touch(g: int, state: State) -> None:
    """Note that instance g may start a pass at the end of this moment."""
    if state.is_touched[g] == 0:
        state.is_touched[g] = 1
        state.touched[state.counters[TOUCHED]] = g
        state.counters[TOUCHED] += 1


@kernel
def reach(i: int, state: State) -> None:
    """Let request i join the queue of its unit."""
    g = state.instance[i]
    u = g * state.backlog.shape[1] + state.unit[i]
    if state.first[u] < 0:
        state.first[u] = i
    else:
        state.following[state.last[u]] = i
    state.last[u] = i
    state.on_device[g] += 1
    touch(g, state)


@kernel
def start_pass(g: int, now: float, setting: Setting, state: State, passes: Passes) -> None:
    """Start a pass on instance g if it is free and somebody is there, or its engine does not ask for that."""
    if state.ends[g] < np.inf or (setting.engine != BACK_TO_BACK and state.on_device[g] == 0):
        return
    counters = state.counters
    D = state.backlog.shape[1]
    row = counters[ROW]
    number = counters[PASSES] + row
    total = fullest = longest = served = completes = 0
    for d in range(D):
        u = g * D + d
        i = state.first[u]
        taken = count = 0
        while i >= 0 and taken < setting.chunk and count < setting.capacity:
            part = min(state.left[i], setting.chunk - taken)
            if state.passes[i] == 0:
                state.began[i] = now
                counters[NOT_BEGUN] -= 1
            state.passes[i] += 1
            state.left[i] -= part
            taken += part
            count += 1
            longest = max(longest, part)
            if state.left[i] > 0:
                break
            state.last_pass[i] = number
            completes += 1
            i = state.following[i]
        state.first[u] = i
        state.in_pass[u] = taken
        if passes.of_unit.size > 0:
            passes.of_unit[row, d] = taken
        total += taken
        fullest = max(fullest, taken)
        served += count
    end = now + (setting.base + setting.per_token * fullest + setting.per_longest * longest)
    state.on_device[g] -= completes
    state.completes[g] = completes
    state.running[g] = number
    state.began_pass[g] = now
    state.ends[g] = end
    state.clock[NEXT_END] = min(state.clock[NEXT_END], end)
    counters[IDLE] -= 1
    passes.instance[row] = g
    passes.start[row] = now
    passes.end[row] = end
    passes.tokens[row] = total
    passes.fullest[row] = fullest
    passes.longest[row] = longest
    passes.requests[row] = served
    counters[ROW] = row + 1


@kernel
def end_pass(g: int, now: float, state: State) -> float:
    """End the pass of instance g; returns how long it took, negative if it was none (busy with nobody at first)."""
    seconds = -1.0
    if state.running[g] >= 0:
        seconds = now - state.began_pass[g]
        for d in range(state.backlog.shape[1]):
            u = g * state.backlog.shape[1] + d
            state.backlog[g, d] -= state.in_pass[u]
            state.in_pass[u] = 0
        state.outstanding[g] -= state.completes[g]
        state.counters[UNFINISHED] -= state.completes[g]
        state.completes[g] = 0
    state.running[g] = -1
    state.ends[g] = np.inf
    state.free_since[g] = now
    state.counters[IDLE] += 1
    touch(g, state)
    return seconds
