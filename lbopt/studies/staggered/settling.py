"""How the interval of Algorithm 1 of SBS follows a change, told from the passes of a run.

A run does not record the interval; every pass that ends sets it, so `AdaptiveInterval` itself, told of the passes in
the order in which they ended and of the healthy instances as they changed, says what it was.

The mean over W passes of constant time is exact W passes after a step from S to T, and moves linearly on the way: it is
within a share e of T after the first k passes with (1 - k / W) |S - T| <= e T (`straight_passes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import AdaptiveInterval, PrefillRun

#: How near its final mean the interval has to come.
NEAR = 0.05


@dataclass(frozen=True, slots=True)
class Settling:
    """What became of the interval after a change.

    Parameters
    ----------
    before, final
        s, its mean in the stretch before the change, and in the one in which it has settled.
    seconds, passes
        From the change until it is first within `NEAR` of `final`, in s and in passes that ended; None where it never
        is.
    jitter
        Its standard deviation once settled, as a share of `final`.
    """

    before: float
    final: float
    seconds: float | None
    passes: int | None
    jitter: float


def intervals(run: PrefillRun, window: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return times (s), the interval from then on (s), and the passes ended by then; all (passes + fleet changes,).

    `window` is that of the policy, which began with the base time of a pass.
    """
    law = AdaptiveInterval(window, run.setting.pass_time.base, run.setting.latency, run.setting.num_instances)
    start, end, instance = (run.passes[name] for name in ("start", "end", "instance"))
    # Passes that end in one moment count in the order of instances, and before a change of the fleet.
    events = [(float(end[k]), int(instance[k]), float(end[k] - start[k])) for k in range(end.size)]
    events += [(at, run.setting.num_instances, float(healthy)) for at, healthy in run.setting.topology]
    times, values, ended = [], [], []
    passes = 0
    for at, which, what in sorted(events):
        if which == run.setting.num_instances:
            values.append(law.on_topology_change(int(what)))
        else:
            passes += 1
            values.append(law.on_end_forward(what))
        times.append(at)
        ended.append(passes)
    return np.array(times), np.array(values), np.array(ended, dtype=np.int64)


def settling(
    run: PrefillRun, window: int, *, since: float, change: float, settled_by: float, until: float
) -> Settling | None:
    """Return how the interval went from its mean in `since` to `change` to that in `settled_by` to `until`, all in s.

    None where no pass ended in one of these stretches.

    Parameters
    ----------
    run
        The run.
    window
        Window of the policy, passes.
    since, change, settled_by, until
        Ends of the two stretches, seconds.
    """
    times, values, ended = intervals(run, window)
    first = int(np.searchsorted(times, change))
    early, late = (times >= since) & (times < change), (times >= settled_by) & (times <= until)
    if not (early.any() and late.any()):
        return None
    before, final = float(values[early].mean()), float(values[late].mean())
    jitter = float(values[late].std() / final)
    if abs(before - final) <= NEAR * final:
        return Settling(before, final, 0.0, 0, jitter)
    near = np.flatnonzero(np.abs(values[first:] - final) <= NEAR * final)
    if near.size == 0:
        return Settling(before, final, None, None, jitter)
    at = first + int(near[0])
    return Settling(before, final, float(times[at] - change), int(ended[at] - ended[first - 1]), jitter)


def straight_passes(window: int, begin: float, final: float) -> int:
    """Return how many passes bring a mean over `window` within `NEAR` of `final`, if it goes there in equal steps."""
    away = abs(begin - final)
    return 0 if away <= NEAR * final else math.ceil(window * (1 - NEAR * final / away) - 1e-9)
