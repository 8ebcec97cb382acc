"""Step-time laws: the protocol, the table, and the text form `name:option=value,option=value` in which users name one.

What a step-time law is: anything that gives the barrier form of a fleet and can say what it is.

The table of step-time laws, and the text form `name:option=value,option=value` in which users name one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import CONSTANTS, device_card, model_card
from lbopt.hardware.step_time.barrier_form import AffineStepTime, BarrierForm, ExpertStepTime, MeanTermStepTime
from lbopt.hardware.step_time.calibrated_law import CalibratedStepTime
from lbopt.hardware.step_time.roofline import Breakdown, RooflineStepTime
from lbopt.hardware.step_time.step_work import Deployment
from lbopt.spec import options_of, unknown


class StepTime(Protocol):
    """Seconds of a decode step, from what the workers hold and run."""

    @property
    def name(self) -> str:
        """As users name it, with its options."""

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form for G workers of B slots."""

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data, for `run.json`."""


@runtime_checkable
class StepTimeByUse(StepTime, Protocol):
    """A step-time law that can use the number of experts that each worker's requests really use."""

    @property
    def experts(self) -> int:
        """Experts of a layer."""

    def form_of_use(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form with a term for experts in use."""


@runtime_checkable
class DraftingStepTime(StepTime, Protocol):
    """A step-time law that says how many tokens of a request a step computes."""

    @property
    def query_tokens(self) -> int:
        """1, or one more than are drafted."""


@runtime_checkable
class ExplainedStepTime(StepTime, Protocol):
    """A step-time law that can say where the seconds of a step go."""

    def breakdown(self, loads: NDArray[Any], running: NDArray[np.int64]) -> Breakdown:
        """Return the parts of steps; `loads` and `running` are (..., G)."""


_BF_IO = AffineStepTime.of_bf_io_paper(72)


def affine(fixed: float = _BF_IO.fixed_seconds, per_token: float = _BF_IO.seconds_per_token) -> StepTime:
    """Build the affine law; the defaults are those of BF-IO's experiments at 72 slots."""
    return AffineStepTime(fixed, per_token)


def mean_term(per_token: float = 1e-7, per_mean_token: float = 5e-8, fixed: float = 0.0) -> StepTime:
    """Build the law with a mean term; the ratio of the defaults is that of the EP-barrier post."""
    return MeanTermStepTime(per_token, per_mean_token, fixed)


@dataclass(frozen=True, slots=True)
class _OnCards:
    """Options of every law of a model on a device.

    Parameters
    ----------
    device, model
        Names of cards or paths of card files.
    tp
        Devices of a worker (tensor parallel).
    experts
        "parallel": experts are spread over all workers; "local": each worker holds all.
    kv_bytes, weight_bytes
        Bytes of a KV entry and of a weight; None takes those of the card.
    query_tokens
        Tokens of a request that a step computes.
    """

    device: str = "h800"
    model: str = "deepseek-v3"
    tp: int = 1
    experts: str = "parallel"
    kv_bytes: float | None = None
    weight_bytes: float | None = None
    query_tokens: int = 1

    def deployment(self, law: str) -> Deployment:
        """Return how the model stands on the devices; `law` is said in errors."""
        if self.experts not in ("parallel", "local"):
            raise InputError(
                f"step time '{law}': experts is '{self.experts}'; expected parallel (spread over all workers) or local "
                "(each worker holds all)"
            )
        sizes = (self.kv_bytes, self.weight_bytes)
        return Deployment(self.tp, self.experts == "parallel", *sizes, self.query_tokens)


@dataclass(frozen=True, slots=True)
class _Roofline(_OnCards):
    """Options of the roofline law; constants that are given take the place of the cards'.

    Parameters
    ----------
    overlap
        Share of dispatch and combine that is hidden behind computation.
    balancedness
        Mean over maximum of the tokens that devices get for their experts.
    memory_bandwidth, memory_efficiency, flops_16bit, flops_8bit, compute_efficiency, link_bandwidth
        In the units of the cards; None takes that of the card, here and below.
    collective_latency, attention_call, step_overhead
        Seconds.
    """

    overlap: float = 0.0
    balancedness: float = 1.0
    memory_bandwidth: float | None = None
    memory_efficiency: float | None = None
    flops_16bit: float | None = None
    flops_8bit: float | None = None
    compute_efficiency: float | None = None
    link_bandwidth: float | None = None
    collective_latency: float | None = None
    attention_call: float | None = None
    step_overhead: float | None = None

    def law(self) -> StepTime:
        """Build it."""
        put = replace(self.deployment("roofline"), overlap=self.overlap, balancedness=self.balancedness)
        constants = [one.name for one in fields(self) if one.name in CONSTANTS]
        given = {name: value for name in constants if (value := getattr(self, name)) is not None}
        return RooflineStepTime(model_card(self.model), device_card(self.device), put, given, (self.device, self.model))


@dataclass(frozen=True, slots=True)
class _Calibrated(_OnCards):
    """Options of the calibrated law of `lbopt cost`, at its nominal values; further ones are `CalibratedStepTime`'s."""

    overlap: bool = False
    balancedness: float | None = None
    prompt_share: float = 0.0

    def law(self) -> StepTime:
        """Build it."""
        own = (self.overlap, self.balancedness, self.prompt_share)
        return CalibratedStepTime(self.device, self.model, self.deployment("calibrated"), *own)


_ELDR = ExpertStepTime.of_eldr()


def by_experts(
    other: float = _ELDR.other_seconds,
    per_request: float = _ELDR.seconds_per_request,
    per_token: float = _ELDR.seconds_per_token,
    layer: float = _ELDR.layer_seconds,
    per_expert: float = _ELDR.seconds_per_expert,
    layers: int = _ELDR.layers,
    experts: int = _ELDR.experts,
    chosen: int = _ELDR.experts_per_token,
) -> StepTime:
    """Build the law by active experts; the defaults are ELDR's calibration for Qwen3-30B-A3B on an MI300X.

    Parameters
    ----------
    other
        Seconds of a step that depend on nothing.
    per_request, per_token
        Seconds for each running request and each resident token.
    layer, per_expert
        Seconds of a layer, and for each expert in use.
    layers, experts, chosen
        Layers, experts of a layer, and experts of a token.
    """
    return ExpertStepTime(other, per_request, per_token, layer, per_expert, layers, experts, chosen)


#: By name, what makes a law, or the record of its options.
STEP_TIMES: dict[str, Callable[..., StepTime] | type[_Roofline | _Calibrated]] = {
    "affine": affine,
    "mean-term": mean_term,
    "roofline": _Roofline,
    "calibrated": _Calibrated,
    "experts": by_experts,
}


def make_step_time(spec: str) -> StepTime:
    """Build the law that `spec` names: a name from `STEP_TIMES`, optionally with options."""
    name, _, rest = spec.partition(":")
    if name not in STEP_TIMES:
        raise unknown("step time", name, STEP_TIMES)
    factory = STEP_TIMES[name]
    made = factory(**options_of("step time", name, rest, factory))
    return made.law() if isinstance(made, _Roofline | _Calibrated) else made
