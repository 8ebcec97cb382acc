"""The work of a decode step before any rate: the deployment, the step that is asked about, and what it takes.

A deployment says how a model stands on devices.

A decode step as a law is asked about it: device, model, how one stands on the other, batch, context, prompts.

The work of a decode step, before any rate: bytes read, arithmetic, messages, and the prompts that come between.

This is what a deployment of a model asks of its devices. A law divides it by what they do in a second: the roofline by
the constants of a card (`roofline_terms.py`), the calibrated law by constants that were fitted to measured steps
(`lbopt/hardware/calibrated`). Formulas are in `roofline.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.step_time.barrier_form import expected_active, number_text


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
        prediction). A step then yields up to as many. How many it yields is no part of its time: a price takes it from
        `accepted`, a simulation from `Detail.draft` and `Detail.acceptance`.
    overlap
        Share of dispatch and combine that is hidden behind computation, 0 to 1; 0: every message is waited for.
    balancedness
        Mean over maximum of the tokens that devices get for their experts, above 0 to 1, where experts are spread over
        several workers; 1: all devices get as many.
    gate
        As in `expected_active`; left out, uniform.
    """

    devices_per_worker: int = 1
    expert_parallel: bool = True
    kv_bytes: float | None = None
    weight_bytes: float | None = None
    query_tokens: int = 1
    gate: tuple[float, ...] | None = None
    overlap: float = 0.0
    balancedness: float = 1.0

    def __post_init__(self) -> None:
        for name in ("devices_per_worker", "query_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected 1 or more")
        for name in ("kv_bytes", "weight_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number above 0")
        if not 0 <= self.overlap <= 1:
            raise InputError(f"overlap is {self.overlap}; expected a share of the messages from 0 to 1")
        if not 0 < self.balancedness <= 1:
            raise InputError(
                f"balancedness is {self.balancedness}; expected more than 0 and at most 1: the mean over the maximum "
                "of the devices' tokens"
            )

    def words(self, device: str, model: str) -> list[str]:
        """Return how users name this deployment of a model on a device, as far as all laws of cards do alike."""
        experts = "parallel" if self.expert_parallel else "local"
        sizes = {"kv_bytes": self.kv_bytes, "weight_bytes": self.weight_bytes}
        given = [f"{option}={number_text(value)}" for option, value in sizes.items() if value is not None]
        return [f"device={device}", f"model={model}", f"tp={self.devices_per_worker}", f"experts={experts}", *given]

    def hot(self, num_workers: int, together: bool) -> float:
        """Return the factor by which experts take longer on the busiest device than on the mean one."""
        return 1 / self.balancedness if together and num_workers > 1 else 1.0


#: The year that a forecast is of, where nothing else is said.
PRESENT = 2026.5

_ABOVE_ZERO = ("running", "context_tokens", "accepted", "drafted", "expert_bytes", "common_bytes", "kv_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStep:
    """One decode step of a balanced fleet.

    Parameters
    ----------
    device, model
        Names or paths of cards.
    devices, tp
        Devices that decode, and devices of one worker.
    expert_parallel
        Whether experts are spread over all workers.
    expert_bytes, common_bytes, kv_bytes
        Bytes of a parameter of an expert (or of a dense model), of any other parameter, and of a cached value.
    running, context_tokens
        Running requests of a worker, and mean cached tokens of a request.
    prompt_share
        Prompt tokens that the same devices compute for every output token.
    accepted, drafted
        Output tokens of a request in a step, and tokens of it that a step computes.
    overlap
        Whether messages between experts overlap with computation.
    year
        Of the engine, such as 2025.5.
    """

    device: str
    model: str
    devices: int
    tp: int
    expert_parallel: bool
    expert_bytes: float
    common_bytes: float
    kv_bytes: float
    running: float
    context_tokens: float
    prompt_share: float = 0.0
    accepted: float = 1.0
    drafted: float = 1.0
    overlap: bool = False
    year: float = PRESENT

    def __post_init__(self) -> None:
        where = f"{self.model} on {self.device}"
        if self.devices < 1 or self.tp < 1 or self.devices % self.tp:
            raise InputError(
                f"{where}: {self.devices} devices in workers of {self.tp}; expected a whole number of workers"
            )
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise InputError(f"{where}: {name} is {getattr(self, name)}; expected a number above 0")

    @property
    def workers(self) -> int:
        """Workers that meet in every step."""
        return self.devices // self.tp

    @property
    def load(self) -> float:
        """Cached tokens of a worker."""
        return self.running * self.context_tokens


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
