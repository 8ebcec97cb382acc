"""What a step asks of a device, in seconds at the rates of its card: the input of the calibrated law.

Every feature is a time that the card's own constants give (bytes over bandwidth times efficiency, arithmetic over rate
times efficiency, bytes over the link) or a count (layers, calls, requests). The calibrated law multiplies them by what
was learnt from measured steps. Work comes from `step_work`, so bytes and arithmetic are counted in one place.

Two things go beyond the roofline. Prompts that the same devices compute between decode steps take
2 * (active - embedding and head) FLOP a token. Attention over a cache of one byte runs at the 8-bit rate, as FlashMLA's
FP8 kernels do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.cards import DeviceCard, ModelCard, device_card, model_card
from lbopt.hardware.step_time import Deployment, Formats, step_work
from lbopt.hardware.step_time.decode_step import PRESENT, DecodeStep

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
        """Return the features of steps; cards are looked up by their names."""
        rows = [features_of(step, device_card(step.device), model_card(step.model)) for step in steps]
        columns = {f.name: np.array([row[f.name] for row in rows]) for f in fields(cls)}
        columns["family"] = columns["family"].astype(np.int64)
        return cls(**columns)

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
