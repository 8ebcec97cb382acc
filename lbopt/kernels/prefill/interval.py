"""The dispatch interval: Algorithm 1 of SBS (arXiv 2512.16134), and the ticks of a clock with that period.

interval = (mean pass + latency) / healthy instances, the mean over a window of measured passes. Without a window the
mean is what the setting says. A new interval counts at once under spacing, and from the next tick on under ticks.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
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
    window, counters = state.window, state.counters
    window[counters[MEASURED] % window.size] = seconds
    counters[MEASURED] += 1
    held = min(window.size, counters[MEASURED])
    total = 0.0
    for k in range(held):
        total += window[k]
    state.clock[MEAN_PASS] = total / held
    recompute(now, setting, counters, state.clock)


@kernel
def recompute(now: float, setting: Setting, counters: Ints, clock: Floats) -> None:
    """Set the interval from mean pass and healthy instances; without any of these it stays as it is."""
    healthy = counters[HEALTHY]
    if setting.fixed_interval >= 0 or healthy == 0:
        return
    interval = (clock[MEAN_PASS] + setting.latency) / healthy
    if interval != clock[INTERVAL]:
        pass_ticks(now, counters, clock)
        clock[TICK_ANCHOR] = next_tick(counters, clock)
        counters[TICK_INDEX] = 0
        clock[INTERVAL] = interval


@kernel
def next_tick(counters: Ints, clock: Floats) -> float:
    """Return the time of the first tick that has not passed."""
    return clock[TICK_ANCHOR] + counters[TICK_INDEX] * clock[INTERVAL]


@kernel
def pass_ticks(now: float, counters: Ints, clock: Floats) -> None:
    """Let all ticks before `now` pass."""
    if next_tick(counters, clock) >= now:
        return
    anchor, interval = clock[TICK_ANCHOR], clock[INTERVAL]
    k = int(np.ceil((now - anchor) / interval))
    while anchor + k * interval < now:  # rounding may put the quotient one off, either way
        k += 1
    while anchor + (k - 1) * interval >= now:
        k -= 1
    counters[TICK_INDEX] = k
