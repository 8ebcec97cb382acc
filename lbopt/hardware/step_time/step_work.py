"""The work of a decode step, before any rate: bytes read, arithmetic, messages, and the prompts that come between.

This is what a deployment of a model asks of its devices. A law divides it by what they do in a second: the roofline by
the constants of a card (`roofline_terms.py`), the calibrated law by constants that were fitted to measured steps
(`lbopt/hardware/calibrated`). Formulas are in `roofline.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.step_time.deployment import Deployment
from lbopt.hardware.step_time.experts import expected_active

Numbers = NDArray[np.float64]

#: Bytes of a value that experts send back: 16 bit, as in DeepSeek's and CloudMatrix's combine.
RETURNED_BYTES = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class StepWork:
    """Work of the busiest device in a step; arrays over numbers of running requests, of a worker or of the fleet.

    Parameters
    ----------
    attention
        Bytes read, and FLOP, per token of a worker's load.
    common
        Bytes and FLOP (B + 1,) of what every worker reads whole, by its running requests.
    experts
        Bytes and FLOP of experts: (B + 1,), or by the requests of the fleet where `together`.
    reductions
        Calls (B + 1,), and bytes (B + 1,) that a device sends, of all-reduces within a worker.
    exchange
        Calls and bytes of dispatch and combine between all devices, by the requests of the fleet; empty without.
    together
        Whether experts are shared by the fleet.
    """

    attention: tuple[float, float]
    common: tuple[Numbers, Numbers]
    experts: tuple[Numbers, Numbers]
    reductions: tuple[Numbers, Numbers]
    exchange: tuple[Numbers, Numbers]
    together: bool


@dataclass(frozen=True, slots=True)
class Formats:
    """Bytes of a cached value, of a parameter of an expert, and of any other parameter."""

    kv_bytes: float
    expert_bytes: float
    common_bytes: float

    @classmethod
    def of(cls, model: ModelCard, kv_bytes: float | None = None, weight_bytes: float | None = None) -> Formats:
        """Return the formats that are given, and those of the model's card where they are not.

        Where the card tells experts from the rest, the given size of a parameter is that of the experts.
        """
        own = model.quantities["weight_bytes"].value if weight_bytes is None else weight_bytes
        common = own if "common_bytes" not in model.quantities else model.common_bytes.value
        kv = model.quantities["kv_bytes"].value if kv_bytes is None else kv_bytes
        return cls(kv_bytes=kv, expert_bytes=own, common_bytes=common)


def step_work(
    model: ModelCard,
    deployment: Deployment,
    formats: Formats,
    num_workers: int,
    running: Numbers,
    active_requests: Numbers,
) -> StepWork:
    """Return the work of a step of G workers with these numbers of requests; they need not be whole.

    Parameters
    ----------
    model, deployment, formats
        What is served, how it stands on devices, and in which precision.
    num_workers
        G.
    running, active_requests
        float64, requests of a worker, and of the fleet.
    """
    shared, queries = deployment.devices_per_worker, deployment.query_tokens
    # A latent vector belongs to all heads and is on every device of the worker; other keys and values go with heads.
    copies = 1 if model.attention == "mla" else min(shared, model["kv_heads"])
    attention = (formats.kv_bytes * model.kv_values_per_token / copies, queries * model.attention_flops / shared)

    tokens = queries * running
    some = np.sign(tokens)  # who has no requests reads nothing that others would wait for
    common = (
        some * (formats.common_bytes * model.common_parameters / shared),
        tokens * (2 * model.common_parameters / shared),
    )

    together = bool(deployment.expert_parallel and model.moe_layers)
    devices = num_workers * shared if together else shared
    met = queries * active_requests if together else tokens
    experts: tuple[Numbers, Numbers] = (np.zeros_like(met), np.zeros_like(met))
    if model.moe_layers:
        chosen = model["experts_per_token"]
        active = expected_active(met, model["experts"], chosen, deployment.gate) / devices
        if together:  # the busiest device reads at least one expert, however few tokens there are
            active = np.where(met > 0, np.maximum(active, 1.0), 0.0)
        of_expert = model.moe_layers * model.expert_parameters
        experts = (active * (formats.expert_bytes * of_expert), met * (2 * chosen * of_expert / devices))

    reductions = (np.zeros_like(tokens), np.zeros_like(tokens))
    if shared > 1:
        sent = 2 * (shared - 1) / shared * RETURNED_BYTES * model["hidden"]
        calls = 2 * model["layers"]
        reductions = (calls * some, calls * (tokens * sent))
    exchange: tuple[Numbers, Numbers] = (np.zeros(0), np.zeros(0))
    if together:
        exchange = (np.zeros_like(met), np.zeros_like(met))
        if devices > 1:
            of_token = (min(formats.expert_bytes, 2.0) + RETURNED_BYTES) * model["experts_per_token"] * model["hidden"]
            sent = (1 - 1 / devices) * of_token / devices
            exchange = (2.0 * model.moe_layers * np.sign(met), model.moe_layers * (met * sent))
    return StepWork(attention, common, experts, reductions, exchange, together)
