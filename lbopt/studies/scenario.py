"""The scenario: which requests, arriving how, on which fleet, with loads read where. What every study simulates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.hardware import PowerLaw, make_step_time
from lbopt.model import Fleet
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, make_detail, make_slo, make_telemetry
from lbopt.studies.configuration import Option, require_kinds
from lbopt.studies.requests import RequestSource

ARRIVALS = ("closed", "trace")

#: Options that run.json of version 0.1 does not have.
_LATER = ("telemetry", "detail", "slo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario, checked on construction.

    Parameters
    ----------
    requests
        Which requests.
    num_workers, slots_per_worker, kv_capacity
        The fleet.
    arrivals, reveal_target, load
        "closed" with a revelation target (None = 4 * G), or "trace" with a share of saturation (None = as they are).
    event_order
        Where loads are read: "paper" or "theory".
    step_time
        The step-time law as `make_step_time` reads it; None = the affine one of the BF-IO experiments for these slots.
    telemetry
        How old what routers see is, as `make_telemetry` reads it; None = they see the truth of the moment.
    detail
        Workers in detail, as `make_detail` reads it; None = none of it.
    slo
        Limits within which requests should be served, as `make_slo` reads it; None = none.
    power
        How the power law reads utilisation, a name from `READINGS`.
    """

    requests: RequestSource = field(default_factory=RequestSource)
    num_workers: Annotated[
        int, Option("Number of workers.", names=("--workers", "-G"), key="workers", panel="Fleet", first=True)
    ] = 8
    slots_per_worker: Annotated[
        int, Option("Slots per worker.", names=("--slots", "-B"), key="slots", panel="Fleet", first=True)
    ] = 72
    kv_capacity: Annotated[
        int | None, Option("KV tokens a worker can hold; exceeding it is reported, or see --detail.", panel="Fleet")
    ] = None
    arrivals: Annotated[
        str, Option("**closed**: as fast as they are taken; **trace**: the trace's times.", panel="Fleet")
    ] = "closed"
    reveal_target: Annotated[
        int | None, Option("Requests kept waiting in a closed loop.", panel="Fleet", shown="4·G")
    ] = None
    load: Annotated[
        float | None, Option("Rescale the trace's times to this share of saturation, e.g. 0.95.", panel="Fleet")
    ] = None
    event_order: Annotated[str, Option("Where loads are read: **paper** or **theory**.", panel="Fleet")] = "paper"
    step_time: Annotated[
        str | None,
        Option("Step-time law, e.g. `roofline:device=h800`.", panel="Fleet", shown="affine, constants of BF-IO"),
    ] = None
    telemetry: Annotated[
        str | None,
        Option(
            "How old what routers see is, e.g. `period=100ms,own=none,front_ends=4`.", panel="Fleet", shown="the truth"
        ),
    ] = None
    detail: Annotated[
        str | None,
        Option("Workers in detail, e.g. `preempt=recompute,draft=2,slow=3:1.5`.", panel="Fleet", shown="nothing"),
    ] = None
    slo: Annotated[
        str | None,
        Option("Limits that requests should be served within, e.g. `tpot=50ms,ttft=2s`.", panel="Fleet", shown="none"),
    ] = None
    power: Annotated[
        str, Option("How power is read: **share**, **split**, **split-fixed-busy** or **mfu**.", panel="Fleet")
    ] = "share"

    def __post_init__(self) -> None:
        if self.arrivals not in ARRIVALS:
            raise InputError(f"arrivals '{self.arrivals}' is unknown; expected {' or '.join(ARRIVALS)}")
        if self.arrivals == "closed" and self.load is not None:
            raise InputError("load has a meaning only for --arrivals trace; a closed loop is always saturated")
        if self.arrivals == "trace" and self.reveal_target is not None:
            raise InputError("reveal_target has a meaning only for --arrivals closed")
        _ = self.setting  # refuses a fleet, load or event order that cannot be

    @property
    def setting(self) -> SimulationSetting:
        """The simulation's rules."""
        return SimulationSetting(
            fleet=Fleet(self.num_workers, self.slots_per_worker, self.kv_capacity),
            arrivals=ClosedLoop(self.reveal_target) if self.arrivals == "closed" else TraceTimes(self.load),
            event_order=self.event_order,  # type: ignore[arg-type]  # checked by SimulationSetting
            step_time=None if self.step_time is None else make_step_time(self.step_time),
            power=PowerLaw(reading=self.power),
            telemetry=None if self.telemetry is None else make_telemetry(self.telemetry),
            detail=None if self.detail is None else make_detail(self.detail),
            slo=None if self.slo is None else make_slo(self.slo),
        )

    def __str__(self) -> str:
        if self.arrivals == "closed":
            arrivals = f"closed loop, {self.reveal_target or 4 * self.num_workers} waiting"
        else:
            arrivals = "arrivals of the trace" + ("" if self.load is None else f" at load {self.load:g}")
        fleet = f"{self.num_workers} workers × {self.slots_per_worker} slots"
        law = "" if self.step_time is None else f" · step time {self.step_time}"
        sight = "" if self.telemetry is None else f" · telemetry {self.telemetry}"
        kindness = "" if self.detail is None else f" · detail {self.detail}"
        return f"{fleet} · {arrivals} · loads read in {self.event_order} order{law}{sight}{kindness}"

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as plain data; what is newer than version 0.1 only where it is used."""
        named = {f.name: getattr(self, f.name) for f in fields(self)} | {"requests": self.requests.describe()}
        return {name: value for name, value in named.items() if name not in _LATER or value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scenario:
        """Rebuild a scenario; wrong names raise TypeError, missing ones KeyError."""
        given = {**data, "requests": RequestSource.of(data["requests"])}
        require_kinds(cls, given)
        return cls(**given)
