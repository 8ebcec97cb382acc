"""The dispatch interval: Algorithm 1 of SBS (arXiv 2512.16134), and the ticks of a clock with that period.

interval = (mean pass + latency) / healthy instances, the mean over a window of measured passes. Without a window the
mean is what the setting says. A new interval counts at once under spacing, and from the next tick on under ticks.
"""

import numpy as np

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.prefill.state import Setting, State


@kernel
def measure_pass(seconds: float, now: float, setting: Setting, state: State) -> None:
    """Take a pass time into the window, and set the interval anew.

    Parameters
    ----------
    seconds, now
        What the pass took, and the time, in s.
    setting
        Of the run.
    state
        Changed in place.
    """
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
    """Set the interval from mean pass and healthy instances; without any of these it stays as it is."""
    healthy = progress.healthy
    if setting.fixed_interval >= 0 or healthy == 0:
        return
    interval = (progress.mean_pass + setting.latency) / healthy
    if interval != progress.interval:
        pass_ticks(now, progress)
        progress.tick_anchor = next_tick(progress)
        progress.tick_index = 0
        progress.interval = interval


@kernel
def next_tick(progress: Record) -> float:
    """Return the time of the first tick that has not passed."""
    return progress.tick_anchor + progress.tick_index * progress.interval


@kernel
def pass_ticks(now: float, progress: Record) -> None:
    """Let all ticks before `now` pass."""
    if next_tick(progress) >= now:
        return
    anchor, interval = progress.tick_anchor, progress.interval
    k = int(np.ceil((now - anchor) / interval))
    while anchor + k * interval < now:  # rounding may put the quotient one off, either way
        k += 1
    while anchor + (k - 1) * interval >= now:
        k -= 1
    progress.tick_index = k
