"""How many requests a second a fleet can serve at most, and a trace's times rescaled to a share of that.

With every slot busy and perfect balance, a slot holds on average

    a = (E[s o] + E[o (o - 1) / 2]) / E[o]          tokens

(a request shows the sizes s, s+1, ..., s+o-1), so every worker holds B * a of them, a step takes the T that the
step-time law gives for that, and G * B slots finish G * B / E[o] requests per step: the saturation rate is
G * B / (E[o] * T). Where it is known which experts requests use, T is the time with those of B requests of the trace.
A trace is brought to a stated share of it by stretching its times, which keeps its bursts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.simulator.setting import SimulationSetting


def saturation_rate(trace: Trace, setting: SimulationSetting) -> float:
    """Return the largest sustainable rate in requests per second, perfectly balanced."""
    G, B = setting.fleet.num_workers, setting.fleet.slots_per_worker
    full = np.full(G, B)
    experts = None if trace.experts is None else np.full(G, trace.experts.expected_in_use(B))
    seconds = setting.form_for(trace).seconds(np.full(G, B * trace.mean_resident_tokens), full, experts)
    return float(setting.fleet.num_slots / (trace.output.mean() * seconds))


def arrival_times(trace: Trace, setting: SimulationSetting, load: float | None) -> NDArray[np.float64]:
    """Return the trace's arrival times in seconds, stretched to `load` times the saturation rate."""
    if trace.arrival is None:
        raise InputError(f"trace '{trace.name}' has no arrival times; use a closed loop (--arrivals closed)")
    times = np.array(trace.arrival, dtype=np.float64)
    if load is None:
        return times
    span = float(times[-1])
    if span <= 0:
        raise InputError(f"trace '{trace.name}' has all its arrivals at one instant; it cannot be scaled to a load")
    own_rate = (len(trace) - 1) / span
    return times * (own_rate / (load * saturation_rate(trace, setting)))
