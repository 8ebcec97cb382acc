"""The scenario: which requests, arriving how, on which fleet, with loads read where. What every study simulates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.hardware import PowerLaw, make_step_time
from lbopt.model import Fleet
from lbopt.simulator import ClosedLoop, Detail, SimulationSetting, TraceTimes, make_detail, make_slo, make_telemetry
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.requests import RequestSource

ARRIVALS = ("closed", "trace")

#: Workers and slots where nothing else is said.
_FLEET = (8, 72)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Configuration):
    """A scenario: which requests, arriving how, on which fleet, with loads read where.

    A closed loop keeps `reveal_target` requests waiting (None = 4 * G); requests by the trace's times come at a share
    of saturation (`load`; None = as they are). Texts are read by `make_step_time`, `make_telemetry`, `make_detail` and
    `make_slo`; without a step time it is the affine one of the BF-IO experiments for these slots.
    """

    what = "a scenario"

    requests: RequestSource = field(default_factory=RequestSource)
    num_workers: Annotated[int, Option("Number of workers.", names=("--workers", "-G"), key="workers", first=True)] = (
        _FLEET[0]
    )
    slots_per_worker: Annotated[int, Option("Slots per worker.", names=("--slots", "-B"), key="slots", first=True)] = (
        _FLEET[1]
    )
    fleet: Annotated[
        str | None,
        Option("Workers and slots in one word, e.g. `8x64`.", shown="as above", later="left out"),
    ] = None
    kv_capacity: Annotated[
        int | None, Option("KV tokens a worker can hold; exceeding it is reported, or see detail.")
    ] = None
    arrivals: Annotated[
        str,
        Option("**closed**: as fast as they are taken; **trace**: the trace's times.", among=ARRIVALS),
    ] = "closed"
    reveal_target: Annotated[int | None, Option("Requests kept waiting in a closed loop.", shown="4·G")] = None
    load: Annotated[float | None, Option("Rescale the trace's times to this share of saturation, e.g. 0.95.")] = None
    event_order: Annotated[str, Option("Where loads are read: **paper** or **theory**.")] = "paper"
    step_time: Annotated[
        str | None,
        Option("Step-time law, e.g. `roofline:device=h800`.", shown="affine, constants of BF-IO"),
    ] = None
    telemetry: Annotated[
        str | None,
        Option(
            "How old what routers see is, e.g. `period=100ms,own=none,front_ends=4`.",
            shown="the truth",
            later="left out",
        ),
    ] = None
    detail: Annotated[
        str | None,
        Option(
            "Workers in detail, e.g. `preempt=recompute,draft=2,slow=3:1.5`.",
            shown="nothing",
            later="left out",
        ),
    ] = None
    gate: Annotated[
        str | None,
        Option(
            "When workers may compute prompts, e.g. `vllm:interval=8`; needs `detail=prefill=TOKENS`.",
            shown="whenever they can",
            later="left out",
        ),
    ] = None
    slo: Annotated[
        str | None,
        Option(
            "Limits that requests should be served within, e.g. `tpot=50ms,ttft=2s`.",
            shown="none",
            later="left out",
        ),
    ] = None
    power: Annotated[str, Option("How power is read: **share**, **split**, **split-fixed-busy** or **mfu**.")] = "share"

    def check(self) -> None:
        """Refuse a fleet, a load or an event order that cannot be, and write a fleet in one word as two numbers."""
        if self.fleet is not None:
            workers, sign, slots = self.fleet.partition("x")
            if not (sign and workers.isdecimal() and slots.isdecimal()):
                raise InputError(f"fleet is '{self.fleet}'; expected WORKERSxSLOTS, such as 8x64")
            named = {"num_workers": int(workers), "slots_per_worker": int(slots), "fleet": None}
            if (self.num_workers, self.slots_per_worker) not in (_FLEET, (int(workers), int(slots))):
                raise InputError(f"fleet is {self.fleet}, beside workers or slots that are others; give one of both")
            for name, value in named.items():
                object.__setattr__(self, name, value)
        if self.arrivals == "closed" and self.load is not None:
            raise InputError("load has a meaning only for arrivals=trace; a closed loop is always saturated")
        if self.arrivals == "trace" and self.reveal_target is not None:
            raise InputError("reveal_target has a meaning only for arrivals=closed")
        _ = self.setting

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
            detail=self._detail,
            slo=None if self.slo is None else make_slo(self.slo),
        )

    @property
    def _detail(self) -> Detail | None:
        if self.gate is None:
            return None if self.detail is None else make_detail(self.detail)
        detail = make_detail(self.detail or "")
        if detail.gate != "none":
            raise InputError(f"gate is named twice, '{self.gate}' and in detail '{detail.gate}'; leave one out")
        return replace(detail, gate=self.gate)

    def __str__(self) -> str:
        if self.arrivals == "closed":
            arrivals = f"closed loop, {self.reveal_target or 4 * self.num_workers} waiting"
        else:
            arrivals = "arrivals of the trace" + ("" if self.load is None else f" at load {self.load:g}")
        fleet = f"{self.num_workers} workers × {self.slots_per_worker} slots"
        law = "" if self.step_time is None else f" · step time {self.step_time}"
        sight = "" if self.telemetry is None else f" · telemetry {self.telemetry}"
        kindness = "" if self.detail is None else f" · detail {self.detail}"
        gate = "" if self.gate is None else f" · gate {self.gate}"
        return f"{fleet} · {arrivals} · loads read in {self.event_order} order{law}{sight}{kindness}{gate}"
