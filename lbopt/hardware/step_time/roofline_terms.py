"""The terms of the roofline law as numbers: what a deployment of a model reads, computes and sends in a step.

This is the pure numeric core: it takes plain constants, so that a study of uncertainty can draw thousands of sets of
them. Formulas are in `roofline.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.step_time.barrier_form import BarrierForm
from lbopt.hardware.step_time.experts import expected_active

Seconds = NDArray[np.float64]

#: Bytes of a value that experts send back: 16 bit, as in DeepSeek's and CloudMatrix's combine.
_RETURNED_BYTES = 2.0
_MAY_BE_ZERO = ("step_overhead", "attention_call", "collective_latency")


@dataclass(frozen=True, slots=True)
class Deployment:
    """How a model stands on devices.

    Parameters
    ----------
    devices_per_worker
        Devices that share the matrices of one worker (tensor parallelism, TP).
    expert_parallel
        Whether the experts of a layer are spread over the devices of all workers, so that tokens of all workers meet
        there; else each worker holds all of them. Says nothing of a dense model.
    kv_bytes, weight_bytes
        Bytes of a cached value and of a parameter; left out, those of the model's card with its ends. At 1 byte or less
        weights are multiplied at the device's 8-bit rate.
    query_tokens
        Tokens of a request that a step computes: 1, or more where later ones are guessed and verified (multi-token
        prediction). A step then yields up to as many.
    gate
        As in `expected_active`; left out, uniform.
    """

    devices_per_worker: int = 1
    expert_parallel: bool = True
    kv_bytes: float | None = None
    weight_bytes: float | None = None
    query_tokens: int = 1
    gate: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("devices_per_worker", "query_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected 1 or more")
        for name in ("kv_bytes", "weight_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number above 0")


@dataclass(frozen=True, slots=True, eq=False)
class RooflineTerms:
    """Seconds of each term; where a term reads and computes at once, both times, of which the longer counts.

    Parameters
    ----------
    overhead
        s of every step.
    attention
        s to read, and s to compute, per token of a worker's load.
    weights
        float64 (B + 1,) each, s to read and to compute with what every worker reads whole, by running requests.
    experts
        The same of experts: (B + 1,) by a worker's requests, or (G * B + 1,) by those of the fleet where `together`.
    reductions
        float64 (B + 1,), s of all-reduces within a worker.
    exchange
        float64 (G * B + 1,) or empty, s of dispatch and combine between all devices.
    together
        Whether experts are shared by the fleet.
    """

    overhead: float
    attention: tuple[float, float]
    weights: tuple[Seconds, Seconds]
    experts: tuple[Seconds, Seconds]
    reductions: Seconds
    exchange: Seconds
    together: bool

    def form(self) -> BarrierForm:
        """Return what the terms come down to."""
        own = np.maximum(*self.weights) + self.reductions
        shared = np.zeros(0)
        if self.together:
            shared = np.maximum(*self.experts) + self.exchange
        else:
            own = own + np.maximum(*self.experts)
        return BarrierForm(self.overhead, max(self.attention), of_running=own, of_active=shared)


def roofline_terms(
    numbers: Mapping[str, float], model: ModelCard, deployment: Deployment, num_workers: int, slots_per_worker: int
) -> RooflineTerms:
    """Return the terms for G workers of B slots, with tables over all numbers of running requests.

    Parameters
    ----------
    numbers
        Constants by the names of `RooflineStepTime.quantities`, in the units of the cards.
    """
    running = np.arange(slots_per_worker + 1, dtype=np.float64)
    active = np.arange(num_workers * slots_per_worker + 1, dtype=np.float64)
    return roofline_terms_at(numbers, model, deployment, num_workers, running, active)


def roofline_terms_at(
    numbers: Mapping[str, float],
    model: ModelCard,
    deployment: Deployment,
    num_workers: int,
    running: Seconds,
    active_requests: Seconds,
) -> RooflineTerms:
    """Return the terms for G workers with tables over these numbers of requests alone; they need not be whole.

    Parameters
    ----------
    numbers
        As in `roofline_terms`.
    running, active_requests
        float64, requests of a worker, and of the fleet.
    """
    for name, value in numbers.items():
        if not math.isfinite(value) or value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
            least = "zero or more" if name in _MAY_BE_ZERO else "more than zero"
            raise InputError(f"{name} is {value:g}; expected a finite number of {least}")
    shared = deployment.devices_per_worker
    queries = deployment.query_tokens
    rate = numbers["memory_bandwidth"] * numbers["memory_efficiency"]
    attention_rate = numbers["flops_16bit"] * numbers["compute_efficiency"]
    weight_rate = numbers.get("flops_8bit", numbers["flops_16bit"]) * numbers["compute_efficiency"]

    # A latent vector belongs to all heads and is on every device of the worker; other keys and values go with heads.
    copies = 1 if model.attention == "mla" else min(shared, model["kv_heads"])
    read = numbers["kv_bytes"] * model.kv_values_per_token / copies / rate
    compute = queries * model.attention_flops / shared / attention_rate

    tokens = queries * running
    some = np.sign(tokens)  # who has no requests reads nothing that others would wait for
    weights = (
        some * (numbers["weight_bytes"] * model.common_parameters / shared / rate),
        tokens * (2 * model.common_parameters / shared / weight_rate),
    )

    together = bool(deployment.expert_parallel and model.moe_layers)
    devices = num_workers * shared if together else shared
    met = queries * active_requests if together else tokens
    experts = (np.zeros_like(met), np.zeros_like(met))
    if model.moe_layers:
        chosen = model["experts_per_token"]
        active = expected_active(met, model["experts"], chosen, deployment.gate) / devices
        if together:  # the busiest device reads at least one expert, however few tokens there are
            active = np.where(met > 0, np.maximum(active, 1.0), 0.0)
        of_expert = model.moe_layers * model.expert_parameters
        experts = (
            active * (numbers["weight_bytes"] * of_expert / rate),
            met * (2 * chosen * of_expert / devices / weight_rate),
        )

    reductions, exchange = np.zeros_like(tokens), np.zeros(0)
    if shared > 1:
        payload = 2 * (shared - 1) / shared * _RETURNED_BYTES * model["hidden"] / numbers["link_bandwidth"]
        reductions = 2 * model["layers"] * (some * numbers["collective_latency"] + tokens * payload)
    if together:
        exchange = np.zeros_like(met)
        if devices > 1:
            sent = (min(numbers["weight_bytes"], 2.0) + _RETURNED_BYTES) * model["experts_per_token"] * model["hidden"]
            payload = (1 - 1 / devices) * sent / devices / numbers["link_bandwidth"]
            exchange = model.moe_layers * ((met > 0) * (2 * numbers["collective_latency"]) + met * payload)
    overhead = numbers["step_overhead"] + model["layers"] * numbers.get("attention_call", 0.0)
    return RooflineTerms(overhead, (read, compute), weights, experts, reductions, exchange, together)
