"""The rules of a simulation: fleet, arrivals, event order, and what a step costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, BarrierForm, PowerLaw, StepTime
from lbopt.hardware.step_time import DraftingStepTime, StepTimeByUse
from lbopt.model import Fleet, Trace
from lbopt.model.integers import LARGEST_TOTAL
from lbopt.simulator.detail import Detail
from lbopt.simulator.recorder import Telemetry
from lbopt.spec import duration, options_of

if TYPE_CHECKING:
    from lbopt.simulator.run import Run


@dataclass(frozen=True, slots=True)
class Slo:
    """Largest time per output token and largest time to the first token, seconds; None = no limit.

    Parameters
    ----------
    tpot
        (finish - start) / output of a request at most.
    ttft
        From the arrival of a request to the end of its first step at most.
    """

    tpot: float | None = None
    ttft: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("tpot", self.tpot), ("ttft", self.ttft)):
            if limit is not None and not 0 < limit < math.inf:
                raise InputError(f"slo: {name} is {limit:g} s; expected more than 0 seconds")
        if self.tpot is None and self.ttft is None:
            raise InputError("slo names no limit; expected for example tpot=50ms,ttft=2s")

    def describe(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def kept(self, run: Run) -> NDArray[np.bool_]:
        """Return which requests of a run were served within the limits, bool (N,)."""
        request = run.requests
        kept = np.ones(len(run.trace), dtype=np.bool_)
        if self.tpot is not None:
            kept &= request["finish_clock"] - request["start_clock"] <= self.tpot * run.trace.output
        if self.ttft is not None:
            kept &= request["first_token_clock"] - request["reveal_clock"] <= self.ttft
        return kept


def make_slo(text: str) -> Slo:
    """Read ``tpot=50ms,ttft=2s``; one of them may be left out.

    Raises
    ------
    InputError
        If a limit is unknown, or no duration.

    Examples
    --------
    >>> from lbopt.simulator import make_slo
    >>> make_slo("tpot=50ms").tpot
    0.05
    """
    return Slo(**options_of("setting", "slo", text, Slo, read={"tpot": duration, "ttft": duration}))


#: Where imbalance, spread, idle share and power are read. The dynamics are the same.
#: ``paper``: after growth and completions, before the next admission (the BF-IO authors' simulator, their Table 1).
#: ``theory``: after admission (the model of the BF-IO paper, in which its theorems are stated).
EventOrder = Literal["paper", "theory"]
EVENT_ORDERS: tuple[EventOrder, ...] = ("paper", "theory")


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Requests appear as fast as they are taken: `reveal_target` are kept waiting (None = 4 * G)."""

    reveal_target: int | None = None

    def __post_init__(self) -> None:
        if self.reveal_target is not None and not 1 <= self.reveal_target <= LARGEST_TOTAL:
            raise InputError(f"reveal_target is {self.reveal_target}; expected 1 to 2**62 waiting requests")

    def describe(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {"kind": "closed-loop", "reveal_target": self.reveal_target}


@dataclass(frozen=True, slots=True)
class TraceTimes:
    """Requests appear at the trace's times, rescaled to `load`, a share of saturation (None = times as they are)."""

    load: float | None = None

    def __post_init__(self) -> None:
        if self.load is not None and not 0 < self.load < 100:
            raise InputError(f"load is {self.load}; expected a share of saturation such as 0.95")

    def describe(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {"kind": "trace-times", "load": self.load}


@dataclass(frozen=True, slots=True)
class SimulationSetting:
    """Everything about a run but the trace, the policy and the seed.

    Parameters
    ----------
    fleet
        Workers, slots, and optionally KV capacity.
    arrivals
        Closed loop or the trace's times.
    event_order
        Where the loads are read, see `EventOrder`.
    step_time
        None = the affine law with the constants of the BF-IO experiments for this fleet's slots.
    power
        Watts from loads, and how they are read.
    telemetry
        How old what routers see is; None = they see the truth of this moment.
    detail
        Workers in detail: memory that runs out, prompts that take time, ...; None = none of it.
    slo
        Limits within which requests should be served; None = none, and no goodput.
    """

    fleet: Fleet
    arrivals: ClosedLoop | TraceTimes = field(default_factory=ClosedLoop)
    event_order: EventOrder = "paper"
    step_time: StepTime | None = None
    power: PowerLaw = field(default_factory=PowerLaw)
    telemetry: Telemetry | None = None
    slo: Slo | None = None
    detail: Detail | None = None

    def __post_init__(self) -> None:
        if self.event_order not in EVENT_ORDERS:
            raise InputError(f"event order '{self.event_order}' is unknown; expected {' or '.join(EVENT_ORDERS)}")
        if self.step_time is None:
            object.__setattr__(self, "step_time", AffineStepTime.of_bf_io_paper(self.fleet.slots_per_worker))
        if self.detail is not None:
            self.detail.refuse_fleet(self.fleet)
            self._refuse_drafts(self.detail.draft)

    def _refuse_drafts(self, draft: int) -> None:
        """Refuse a law that computes other tokens than are drafted; one token a request prices drafting elsewhere."""
        computed = self.law.query_tokens if isinstance(self.law, DraftingStepTime) else 1
        if draft and computed > 1 and computed != 1 + draft:
            raise InputError(
                f"detail drafts {draft} tokens of a request in a step, and step time '{self.law.name}' computes "
                f"{computed}; expected query_tokens={1 + draft}, the token that is due and those drafted"
            )

    @property
    def law(self) -> StepTime:
        """The step-time law, filled in."""
        assert self.step_time is not None
        return self.step_time

    @property
    def num_slots(self) -> int:
        """Slots of the whole fleet, where workers may have different numbers of them."""
        fewer = () if self.detail is None else self.detail.slots
        return self.fleet.num_slots - sum(self.fleet.slots_per_worker - slots for _, slots in fewer)

    @property
    def form(self) -> BarrierForm:
        """The step-time law for this fleet."""
        return self.law.form(self.fleet.num_workers, self.fleet.slots_per_worker)

    def form_for(self, trace: Trace) -> BarrierForm:
        """Return the step-time law for this fleet and these requests, whose use of experts may be known."""
        law = self.law
        if trace.experts is None or not isinstance(law, StepTimeByUse):
            return self.form
        experts = trace.experts.shape[1]
        if experts != law.experts:
            raise InputError(
                f"trace '{trace.name}' is of a model with {experts} experts a layer, step time '{law.name}' of one "
                f"with {law.experts}; expected the same model"
            )
        return law.form_of_use(self.fleet.num_workers, self.fleet.slots_per_worker)

    def describe(self) -> dict[str, Any]:
        """Return the setting as plain data, for `run.json`; what is newer than version 0.1 only where it is used."""
        later = {"telemetry": self.telemetry, "detail": self.detail, "slo": self.slo}
        return {
            "num_workers": self.fleet.num_workers,
            "slots_per_worker": self.fleet.slots_per_worker,
            "kv_capacity": self.fleet.kv_capacity,
            "arrivals": self.arrivals.describe(),
            "event_order": self.event_order,
            "step_time": self.law.describe(),
            "power": self.power.describe(),
            **{name: option.describe() for name, option in later.items() if option is not None},
        }
