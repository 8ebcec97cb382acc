"""The dispatch interval: Algorithm 1 of SBS (arXiv 2512.16134), and the ticks of a clock with that period.

interval = (mean pass + latency) / healthy instances, the mean over a window of measured passes. Without a window the
mean is what the setting says. A new interval counts at once under spacing, and from the next tick on under ticks.
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.tables import (
    HEALTHY,
    INTERVAL,
    MEAN_PASS,
    MEASURED,
    TICK_ANCHOR,
    TICK_INDEX,
    Setting,
    State,
)


@kernel
def measure_pass(seconds: float, now: float, setting: Setting, state: State) -> None:
    """Take a pass time into the window, and set the interval anew."""
    W = state.window.size
    if W == 0:
        return
    state.window[state.counters[MEASURED] % W] = seconds
    state.counters[MEASURED] += 1
    held = min(W, state.counters[MEASURED])
    total = 0.0
    for k in range(held):
        total += state.window[k]
    state.clock[MEAN_PASS] = total / held
    recompute(now, setting, state)


@kernel
def recompute(now: float, setting: Setting, state: State) -> None:
    """Set the interval from mean pass and healthy instances; without any of these it stays as it is."""
    healthy = state.counters[HEALTHY]
    if setting.fixed_interval >= 0 or healthy == 0:
        return
    interval = (state.clock[MEAN_PASS] + setting.latency) / healthy
    if interval != state.clock[INTERVAL]:
        pass_ticks(now, state)
        state.clock[TICK_ANCHOR] = next_tick(state)
        state.counters[TICK_INDEX] = 0
        state.clock[INTERVAL] = interval


@kernel
def next_tick(state: State) -> float:
    """Return the time of the first tick that has not passed."""
    return state.clock[TICK_ANCHOR] + state.counters[TICK_INDEX] * state.clock[INTERVAL]


@kernel
def pass_ticks(now: float, state: State) -> None:
    """Let all ticks before `now` pass."""
    if next_tick(state) >= now:
        return
    interval = state.clock[INTERVAL]
    k = int(np.ceil((now - state.clock[TICK_ANCHOR]) / interval))
    while state.clock[TICK_ANCHOR] + k * interval < now:  # rounding may put the quotient one off, either way
        k += 1
    while state.clock[TICK_ANCHOR] + (k - 1) * interval >= now:
        k -= 1
    state.counters[TICK_INDEX] = k
