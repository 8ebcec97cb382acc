"""The table of step-time laws, and the text form `name:option=value,option=value` in which users name one."""

from __future__ import annotations

from collections.abc import Callable

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import device_card, model_card
from lbopt.hardware.step_time.affine import AffineStepTime
from lbopt.hardware.step_time.deployment import Deployment
from lbopt.hardware.step_time.experts import ExpertStepTime
from lbopt.hardware.step_time.law import StepTime
from lbopt.hardware.step_time.mean_term import MeanTermStepTime
from lbopt.hardware.step_time.roofline import RooflineStepTime
from lbopt.spec import options_of, unknown

_BF_IO = AffineStepTime.of_bf_io_paper(72)


def affine(fixed: float = _BF_IO.fixed_seconds, per_token: float = _BF_IO.seconds_per_token) -> StepTime:
    """Build the affine law; the defaults are those of BF-IO's experiments at 72 slots."""
    return AffineStepTime(fixed, per_token)


def mean_term(per_token: float = 1e-7, per_mean_token: float = 5e-8, fixed: float = 0.0) -> StepTime:
    """Build the law with a mean term; the ratio of the defaults is that of the EP-barrier post."""
    return MeanTermStepTime(per_token, per_mean_token, fixed)


def roofline(
    device: str = "h800",
    model: str = "deepseek-v3",
    tp: int = 1,
    experts: str = "parallel",
    kv_bytes: float | None = None,
    weight_bytes: float | None = None,
    query_tokens: int = 1,
    memory_bandwidth: float | None = None,
    memory_efficiency: float | None = None,
    flops_16bit: float | None = None,
    flops_8bit: float | None = None,
    compute_efficiency: float | None = None,
    link_bandwidth: float | None = None,
    collective_latency: float | None = None,
    attention_call: float | None = None,
    step_overhead: float | None = None,
) -> StepTime:
    """Build the roofline law of two cards; constants that are given take the place of the cards'.

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
        Tokens that a request emits in a step.
    memory_bandwidth, link_bandwidth
        bytes/s; None takes that of the card, here and below.
    memory_efficiency, compute_efficiency
        Share of the peak that is reached.
    flops_16bit, flops_8bit
        Operations a second.
    collective_latency, attention_call, step_overhead
        Seconds.
    """
    if experts not in ("parallel", "local"):
        raise InputError(
            f"step time 'roofline': experts is '{experts}'; expected parallel (spread over all workers) or local "
            "(each worker holds all)"
        )
    given = {
        "memory_bandwidth": memory_bandwidth,
        "memory_efficiency": memory_efficiency,
        "flops_16bit": flops_16bit,
        "flops_8bit": flops_8bit,
        "compute_efficiency": compute_efficiency,
        "link_bandwidth": link_bandwidth,
        "collective_latency": collective_latency,
        "attention_call": attention_call,
        "step_overhead": step_overhead,
    }
    deployment = Deployment(tp, experts == "parallel", kv_bytes, weight_bytes, query_tokens)
    replaced = {name: value for name, value in given.items() if value is not None}
    return RooflineStepTime(model_card(model), device_card(device), deployment, replaced, (device, model))


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


STEP_TIMES: dict[str, Callable[..., StepTime]] = {
    "affine": affine,
    "mean-term": mean_term,
    "roofline": roofline,
    "experts": by_experts,
}


def make_step_time(spec: str) -> StepTime:
    """Build the law that `spec` names: a name from `STEP_TIMES`, optionally with options."""
    name, _, rest = spec.partition(":")
    if name not in STEP_TIMES:
        raise unknown("step time", name, STEP_TIMES)
    factory = STEP_TIMES[name]
    return factory(**options_of("step time", name, rest, factory))
