"""What is recorded of a run: steps, telemetry, and what happened in it.

What workers in detail did beyond making tokens: pre-emptions, tokens computed twice, memory in use.

How old what routers see is: `Telemetry`, and the text in which users write it.

The recorder: takes the loop's rows a few thousand at a time and keeps one line per step.

Loads of single workers are reduced at once (max, sum, min, power) and kept only on request, so a long run on a wide
fleet costs bytes per step, not per step and worker.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.hardware import StepTime
from lbopt.hardware.step_time import ExplainedStepTime, kinds_of
from lbopt.kernels.detail import state as compiled
from lbopt.kernels.simulation.state import Rows
from lbopt.spec import duration, options_of

if TYPE_CHECKING:
    from lbopt.simulator.setting import SimulationSetting

if TYPE_CHECKING:
    from lbopt.simulator.run import Run


@dataclass(frozen=True, slots=True)
class Happened:
    """Counts of a whole run.

    Parameters
    ----------
    preemptions
        Times that a running request had to wait again because memory ran out.
    recomputed_tokens
        Tokens that were computed once more, after a pre-emption or after their worker had left.
    moved_tokens
        Tokens moved out of memory and into it.
    returned_requests
        Requests that workers which left gave back to the router.
    reused_tokens
        Tokens of prompts that caches of prefixes saved.
    pauses
        Times that a running request was held out of a step.
    """

    preemptions: int
    recomputed_tokens: int
    moved_tokens: int
    returned_requests: int
    reused_tokens: int
    pauses: int


def happened_of(detail: compiled.Detail) -> Happened | None:
    """Return what the loop counted; None without `SimulationSetting.detail`."""
    if not detail.rules.on:
        return None
    tally = detail.tally
    return Happened(
        *(int(tally[name]) for name in ("preemptions", "recomputed", "moved", "returned", "reused", "pauses"))
    )


def detail_figures(run: Run) -> dict[str, Any]:
    """Return the counts of a run in detail and, over all its steps, the rates that tables show."""
    assert run.happened is not None and run.setting.detail is not None
    steps, fleet, detail = run.steps, run.setting.fleet, run.setting.detail
    enforced = detail.preempt != "none" and fleet.kv_capacity is not None
    blocks = fleet.num_workers * ((fleet.kv_capacity or 0) // detail.block)
    return asdict(run.happened) | {
        "computed_tokens": int(steps["computed"].sum()),
        "memory_share": float(steps["blocks"].mean() / blocks) if enforced else None,
        "tokens_per_turn": float(steps["made"].sum() / steps["active"].sum()),
    }


#: What a front end adds to the last report by itself.
OWN = ("optimistic", "none")

#: Reports at most this often, s, unless they come with every step; a run would be all reports.
_OFTEN = 1e-3


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Routers see the last report of each worker, and what they sent it since.

    Parameters
    ----------
    period
        Seconds between reports of a worker; 0 = a report before every decision.
    own
        "optimistic": a front end adds what it sends to a worker until the next report of it; "none": it does not.
    jitter
        Each period is longer or shorter by up to this share, evenly distributed; 0 to 1.
    lost
        Chance that a report does not arrive; 0 to below 1.
    front_ends
        Routers that do not see what the others send: request i comes in through front end i mod C.
    """

    period: float = 0.1
    own: str = "optimistic"
    jitter: float = 0.0
    lost: float = 0.0
    front_ends: int = 1

    def __post_init__(self) -> None:
        if not (self.period == 0 or _OFTEN <= self.period < math.inf):
            raise InputError(f"telemetry: period is {self.period:g} s; expected 0 (every decision) or 0.001 s and more")
        if self.own not in OWN:
            raise InputError(f"telemetry: own is {shown(self.own)}; expected {' or '.join(OWN)}")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"telemetry: jitter is {self.jitter:g}; expected a share of the period from 0 to 1")
        if not 0 <= self.lost < 1:
            raise InputError(f"telemetry: lost is {self.lost:g}; expected a chance from 0 to below 1")
        if not 1 <= self.front_ends <= 10_000:
            raise InputError(f"telemetry: front_ends is {self.front_ends}; expected 1 to 10,000 routers")

    def describe(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def make_telemetry(text: str) -> Telemetry:
    """Read ``period=100ms,own=none,jitter=0.1,lost=0.01,front_ends=4``; what is left out is the default.

    Raises
    ------
    InputError
        If an option or a value is unknown.

    Examples
    --------
    >>> from lbopt.simulator import make_telemetry
    >>> make_telemetry("period=20ms,front_ends=4").period
    0.02
    """
    return Telemetry(**options_of("setting", "telemetry", text, Telemetry, read={"period": duration}))


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
