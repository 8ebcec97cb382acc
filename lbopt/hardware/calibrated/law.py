"""The calibrated law: what a step asks of a device, and a roofline whose factors were learnt from measured steps.

What a step asks of a device, in seconds at the rates of its card: the input of the calibrated law.

Every feature is a time that the card's own constants give (bytes over bandwidth times efficiency, arithmetic over rate
times efficiency, bytes over the link) or a count (layers, calls, requests). The calibrated law multiplies them by what
was learnt from measured steps. Work comes from `step_work`, so bytes and arithmetic are counted in one place.

Two things go beyond the roofline. Prompts that the same devices compute between decode steps take
2 * (active - embedding and head) FLOP a token. Attention over a cache of one byte runs at the 8-bit rate, as FlashMLA's
FP8 kernels do.

The calibrated law: a roofline with factors and overheads that were learnt from measured steps.

    seconds = dispatch + work, all of it times exp(year * years)
    dispatch = fixed + (layers * launch) * latent + requests * host
               + reduce_calls * reduce + exchange_calls * call * (1 - overlap o)
    work = max(attention_read / m, attention_compute / c) / a + max(common_read / m, common_compute / c)
           + max(expert_read / m, expert_compute / c) / g * hot + prompt_compute / (c p)
           + reduce_send / l + exchange_send / l * (1 - overlap o)

m and c are factors of the device's family on what the card says of memory and arithmetic; a, g, p and l of all
families on attention, experts, prompts and links. `hot` is the busiest device's share of experts over the mean, where
experts are spread; `latent` the factor on launches where attention is latent, which takes more kernels; attention of
early engines takes `early` times as long. Parameters are held in a transformed form in which their prior is normal:
logarithms, and a logit for o. A run has one effect on its dispatch, which is the engine's doing, and one on its work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.cards import DeviceCard, ModelCard, device_card, model_card
from lbopt.hardware.step_time import Deployment, Formats, step_work
from lbopt.hardware.step_time.step_work import PRESENT, DecodeStep

Numbers = NDArray[np.float64]

#: Makers whose software and boards are alike; a card of one's own is of none of them.
FAMILIES = ("nvidia", "amd", "ascend", "tpu")
_PREFIXES = {"a100": 0, "b200": 0, "gb200": 0, "h": 0, "mi": 1, "ascend": 2, "tpu": 3}
OTHER = len(FAMILIES)

#: Parameters of at most so many bytes are of four bits, scales of small blocks included. Devices without arithmetic in
#: four bits unpack them and compute in sixteen.
PACKED = 0.75

#: Decode kernels that share keys and values among the query heads of a group came with FlashDecoding (October 2023) and
#: reached engines in the half year after.
GROUPED_SINCE = 2024.5


def family_of(device: str) -> int:
    """Return the place of a device card's family in `FAMILIES`, or `OTHER`, by the card's name."""
    return next((place for prefix, place in _PREFIXES.items() if device.startswith(prefix)), OTHER)


@dataclass(frozen=True, slots=True, eq=False)
class StepFeatures:
    """Features of P steps, float64 (P,) each; seconds at the card's rates unless said otherwise.

    Parameters
    ----------
    attention_read, attention_compute
        Over the load of the heaviest worker.
    common_read, common_compute
        What every worker reads whole.
    expert_read, expert_compute
        Experts of the mean device.
    prompt_compute
        Prompts between decode steps.
    reduce_calls, reduce_send
        All-reduces within a worker: calls, and seconds of bytes over the link.
    exchange_calls, exchange_send
        Dispatch and combine between all devices.
    layers, requests
        Layers of the model, and tokens that a worker computes.
    spread, beyond, overlap, latent
        1 where experts are spread over workers; where a worker reaches beyond the fast link; where messages overlap;
        where attention is latent.
    years
        Years from the measurement to `PRESENT`: engines become faster.
    early
        1 for engines before `GROUPED_SINCE`, whose kernels read keys and values once a query head.
    family
        int64, place in `FAMILIES`.
    """

    attention_read: Numbers
    attention_compute: Numbers
    common_read: Numbers
    common_compute: Numbers
    expert_read: Numbers
    expert_compute: Numbers
    prompt_compute: Numbers
    reduce_calls: Numbers
    reduce_send: Numbers
    exchange_calls: Numbers
    exchange_send: Numbers
    layers: Numbers
    requests: Numbers
    spread: Numbers
    beyond: Numbers
    overlap: Numbers
    latent: Numbers
    years: Numbers
    early: Numbers
    family: NDArray[np.int64]

    @classmethod
    def of(cls, steps: Sequence[DecodeStep]) -> StepFeatures:
        """Return the features of steps, by the cards that they name."""
        return cls.of_rows([features_of(step, device_card(step.device), model_card(step.model)) for step in steps])

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, float]]) -> StepFeatures:
        """Return rows of `features_of` as columns."""
        columns = {f.name: np.array([row[f.name] for row in rows]) for f in fields(cls)}
        return cls(**{**columns, "family": columns["family"].astype(np.int64)})

    def __len__(self) -> int:
        return self.layers.size

    def take(self, places: NDArray[np.intp]) -> StepFeatures:
        """Return the features of some of the steps."""
        return StepFeatures(**{f.name: getattr(self, f.name)[places] for f in fields(self)})


def features_of(step: DecodeStep, device: DeviceCard, model: ModelCard) -> dict[str, float]:
    """Return the features of one step on a device, by name."""
    deployment = Deployment(step.tp, step.expert_parallel, query_tokens=max(1, round(step.drafted)))
    formats = Formats(step.kv_bytes, step.expert_bytes, step.common_bytes)
    running = np.array([step.running])
    work = step_work(model, deployment, formats, step.workers, running, running * step.workers)

    bandwidth = device["memory_bandwidth"].value * device["memory_efficiency"].value
    reached = device["compute_efficiency"].value
    wide = device["flops_16bit"].value * reached
    narrow = device["flops_8bit"].value * reached if "flops_8bit" in device.constants else wide
    packed = device["flops_4bit"].value * reached if "flops_4bit" in device.constants else wide

    def rate(size: float) -> float:
        if size > 1:
            return wide
        return narrow if size > PACKED else packed

    domain = device["link_domain"].value if "link_domain" in device.constants else 8.0
    link = device.constants.get("link_bandwidth")
    fast, slow = (link.high, link.value) if link is not None else (1e15, 1e15)
    devices = step.devices if work.together else step.tp
    exchange_calls, exchange_send = (float(part.sum()) for part in work.exchange)
    inner = 2 * model["vocabulary"] * model["hidden"]
    prompt_flops = 2 * (model.active_parameters - inner) * step.running * step.prompt_share / step.tp
    return {
        "attention_read": step.load * work.attention[0] / bandwidth,
        "attention_compute": step.load * work.attention[1] / rate(step.kv_bytes),
        "common_read": float(work.common[0][0]) / bandwidth,
        "common_compute": float(work.common[1][0]) / rate(step.common_bytes),
        "expert_read": float(work.experts[0][0]) / bandwidth,
        "expert_compute": float(work.experts[1][0]) / rate(step.expert_bytes),
        "prompt_compute": prompt_flops / rate(step.expert_bytes),
        "reduce_calls": float(work.reductions[0][0]),
        "reduce_send": float(work.reductions[1][0]) / (fast if step.tp <= domain else slow),
        "exchange_calls": exchange_calls,
        "exchange_send": exchange_send / (fast if devices <= domain else slow),
        "layers": float(model["layers"]),
        "requests": step.running * step.drafted,
        "spread": float(work.together and step.workers > 1),
        "beyond": float(step.tp > domain),
        "overlap": float(step.overlap),
        "latent": float(model.attention == "mla"),
        "years": PRESENT - step.year,
        "early": float(step.year < GROUPED_SINCE),
        "family": family_of(device.name),
    }


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter in its transformed form: name, mean and standard deviation before any step was seen, meaning."""

    name: str
    mean: float
    deviation: float
    meaning: str


def _of_seconds(name: str, seconds: float, factor: float, meaning: str) -> Parameter:
    """Return a logarithm of seconds that lies within a factor either way with 68 %."""
    return Parameter(name, float(np.log(seconds)), float(np.log(factor)), meaning)


#: Parameters of all families. Before any step was seen: kernels reach what the cards say within a third, a launch of a
#: layer takes tens of microseconds, collectives ten or more; every prior is wide enough to be refuted.
COMMON = (
    Parameter("memory", 0.0, 0.25, "factor on the share of bandwidth that kernels reach"),
    Parameter("compute", -0.2, 0.4, "factor on the share of arithmetic that kernels reach"),
    Parameter("attention", 0.0, 0.3, "further factor of attention kernels"),
    Parameter("grouped", -0.2, 0.35, "further factor of expert kernels"),
    Parameter("prompt", -0.2, 0.5, "further factor of prompts on arithmetic"),
    Parameter("link", -0.3, 0.5, "factor on the bytes that links carry"),
    _of_seconds("fixed", 2e-3, 2.5, "s a step: scheduler, sampling"),
    _of_seconds("launch", 6e-5, 2.0, "s a layer: launches, norms, small kernels"),
    _of_seconds("host", 1e-5, 3.0, "s a token of a worker: sampling, bookkeeping, small kernels"),
    _of_seconds("reduce", 1.2e-5, 2.0, "s of an all-reduce of no payload within the fast link"),
    _of_seconds("beyond", 5.0, 1.6, "how many times as long beyond the fast link (25 to 62 us: NCCL issue 1453)"),
    _of_seconds("call", 4e-5, 2.0, "s of a dispatch or combine of no payload"),
    _of_seconds("latent", 1.3, 1.3, "factor on launches where attention is latent"),
    _of_seconds("hot", 1.3, 1.25, "load of the busiest device over the mean, experts spread"),
    _of_seconds("early", 2.0, 1.5, "factor on attention of engines that did not share keys and values"),
    Parameter("year", 0.1, 0.1, "logarithm of the factor by which an engine of a year ago is slower"),
    Parameter("overlap", 0.0, 1.0, "logit of the share of messages that overlap hides"),
)
#: Parameters that each family may have of its own, and how far they may lie from the common one.
OF_FAMILY = {"memory": 0.15, "compute": 0.25, "launch": 0.35}
PARAMETERS = COMMON + tuple(
    Parameter(f"{name}/{family}", 0.0, deviation, f"logarithm of the factor of {family} on {name}")
    for name, deviation in OF_FAMILY.items()
    for family in FAMILIES
)
_PLACE = {parameter.name: place for place, parameter in enumerate(PARAMETERS)}
_FAMILY = {name: np.array([_PLACE[f"{name}/{family}"] for family in FAMILIES], dtype=np.int64) for name in OF_FAMILY}
MEANS = np.array([parameter.mean for parameter in PARAMETERS])
DEVIATIONS = np.array([parameter.deviation for parameter in PARAMETERS])


@dataclass(frozen=True, slots=True, eq=False)
class StepParts:
    """Seconds of steps by part, float64 of one shape: (P,) or (D, P) under D draws of the parameters.

    Parameters
    ----------
    overhead, calls
        Launches, scheduler and sampling; and collectives of no payload: the engine's dispatch.
    attention, common, experts, prompts, sent
        Attention over the load, what every worker reads whole, experts, prompts, and bytes over links: the work.
    """

    overhead: Numbers
    calls: Numbers
    attention: Numbers
    common: Numbers
    experts: Numbers
    prompts: Numbers
    sent: Numbers

    @property
    def dispatch(self) -> Numbers:
        """What does not depend on bytes or arithmetic."""
        return self.overhead + self.calls

    @property
    def work(self) -> Numbers:
        """Bytes, arithmetic and payloads."""
        return self.attention + self.common + self.experts + self.prompts + self.sent

    @property
    def seconds(self) -> Numbers:
        """The whole step."""
        return self.dispatch + self.work

    def of_run(self, effects: Numbers) -> Numbers:
        """Return the whole step of a run; `effects` (..., 2) are logarithms of its factors on dispatch and work."""
        return self.dispatch * np.exp(effects[..., 0]) + self.work * np.exp(effects[..., 1])


def step_parts(parameters: Numbers, features: StepFeatures) -> StepParts:
    """Return the parts of steps.

    Parameters
    ----------
    parameters
        float64 (Q,) or (D, Q), in the order of `PARAMETERS`, transformed.
    features
        Of P steps.
    """

    def common(name: str) -> Numbers:
        return np.asarray(parameters[..., _PLACE[name], None])

    def own(name: str) -> Numbers:
        """Of the family: the common value and the family's deviation; a card of no family has the common one."""
        none = np.zeros((*parameters.shape[:-1], 1))
        of_all: Numbers = np.concatenate([parameters[..., _FAMILY[name]], none], axis=-1)
        return np.asarray(common(name) + of_all[..., features.family])

    f = features
    memory, compute = np.exp(own("memory")), np.exp(own("compute"))
    sent, older = np.exp(common("link")), np.exp(common("year") * f.years)
    shown = 1 - f.overlap / (1 + np.exp(-common("overlap")))
    launches = f.layers * np.exp(own("launch") + f.latent * common("latent"))
    calls = f.reduce_calls * np.exp(common("reduce") + f.beyond * common("beyond"))
    attention = np.maximum(f.attention_read / memory, f.attention_compute / compute) / np.exp(common("attention"))
    experts = np.maximum(f.expert_read / memory, f.expert_compute / compute) / np.exp(common("grouped"))
    return StepParts(
        overhead=older * (np.exp(common("fixed")) + launches + f.requests * np.exp(common("host"))),
        calls=older * (calls + f.exchange_calls * np.exp(common("call")) * shown),
        attention=older * attention * np.exp(f.early * common("early")),
        common=older * np.maximum(f.common_read / memory, f.common_compute / compute),
        experts=older * experts * np.exp(f.spread * common("hot")),
        prompts=older * f.prompt_compute / compute / np.exp(common("prompt")),
        sent=older * (f.reduce_send + f.exchange_send * shown) / sent,
    )
