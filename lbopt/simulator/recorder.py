"""The recorder: takes the loop's rows a few thousand at a time and keeps one line per step.

Loads of single workers are reduced at once (max, sum, min, power) and kept only on request, so a long run on a wide
fleet costs bytes per step, not per step and worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware import StepTime
from lbopt.hardware.step_time import ExplainedStepTime, kinds_of
from lbopt.kernels.simulation.state import Rows
from lbopt.simulator.setting import SimulationSetting

#: Further columns of runs in detail (`SimulationSetting.detail`).
DETAIL_COLUMNS: dict[str, str] = {
    "made": "tokens made with the step",
    "computed": "tokens of prompts computed in the step",
    "blocks": "blocks of memory in use during the step, all workers",
}

#: Columns of `Run.steps`, with units. "read" = at the reading point of the event order.
STEP_COLUMNS: dict[str, str] = {
    "barrier_max": "tokens, heaviest worker during the step",
    "barrier_sum": "tokens, all workers during the step",
    "post_max": "tokens, heaviest worker after growth and completions",
    "post_sum": "tokens, all workers after growth and completions",
    "read_max": "tokens, heaviest worker where loads are read",
    "read_min": "tokens, lightest worker where loads are read",
    "read_sum": "tokens, all workers where loads are read",
    "watts": "W, whole fleet",
    "active": "requests running during the step",
    "seconds": "s, duration of the step",
    "clock": "s, at the end of the step",
    "completed": "requests that ended with the step",
    "admitted": "requests admitted just before the step",
    "waiting": "requests waiting at the decision before the step",
    "free_slots": "slots free at the decision before the step",
    "real_choice": "1 where two feasible placements of that decision differ",
    "experts": "different experts of a layer in use, mean over busy workers; NaN where the trace does not say",
    "over_capacity": "workers above their KV capacity during the step",
    "bound": "place in KINDS of what binds the step, memory or compute or ...; -1 where the law does not say",
}


@dataclass(slots=True)
class Recorder:
    """Collects rows; `columns` joins them at the end."""

    setting: SimulationSetting
    keep_loads: bool
    seconds_per_token: float = field(init=False)
    law: StepTime = field(init=False)
    _parts: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seconds_per_token = self.setting.form.per_token
        self.law = self.setting.law

    def take(self, rows: Rows, count: int) -> None:
        """Take the first `count` rows."""
        barrier = rows.barrier_loads[:count]
        post = rows.post_loads[:count]
        read = post if self.setting.event_order == "paper" else barrier
        seconds, active = rows.seconds[:count], rows.active[:count]
        part: dict[str, NDArray[Any]] = {
            "barrier_max": barrier.max(axis=1),
            "barrier_sum": barrier.sum(axis=1),
            "post_max": post.max(axis=1),
            "post_sum": post.sum(axis=1),
            "read_min": read.min(axis=1),
            "watts": self.setting.power.fleet_watts(read, seconds, self.seconds_per_token, active),
        }
        part["bound"] = np.full(count, -1)
        if isinstance(self.law, ExplainedStepTime):
            part["bound"] = kinds_of(self.law.breakdown(barrier, rows.running[:count]).kind)
        source = "post" if self.setting.event_order == "paper" else "barrier"
        part["read_max"] = part[f"{source}_max"]
        part["read_sum"] = part[f"{source}_sum"]
        for name in STEP_COLUMNS | (DETAIL_COLUMNS if self.setting.detail is not None else {}):
            if name not in part:
                part[name] = getattr(rows, name)[:count].copy()
        if self.keep_loads:
            part["barrier_loads"] = barrier.copy()
            part["post_loads"] = post.copy()
        for name, values in part.items():
            self._parts.setdefault(name, []).append(values)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return every column over all steps."""
        return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in self._parts.items()}
