"""The terms of the roofline law as numbers: the work of a step over the rates of a card.

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
from lbopt.hardware.step_time.deployment import Deployment
from lbopt.hardware.step_time.step_work import Formats, step_work

Seconds = NDArray[np.float64]

_MAY_BE_ZERO = ("step_overhead", "attention_call", "collective_latency")


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
        float64 (G * B + 1,) or empty, s of dispatch and combine between all devices that are waited for.
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
    formats = Formats(
        kv_bytes=numbers["kv_bytes"],
        expert_bytes=numbers["weight_bytes"],
        common_bytes=numbers.get("common_bytes", numbers["weight_bytes"]),
    )
    work = step_work(model, deployment, formats, num_workers, running, active_requests)
    bandwidth = numbers["memory_bandwidth"] * numbers["memory_efficiency"]
    of_attention = numbers["flops_16bit"] * numbers["compute_efficiency"]
    of_weights = numbers.get("flops_8bit", numbers["flops_16bit"]) * numbers["compute_efficiency"]
    hot = deployment.hot(num_workers, work.together)
    shown = 1 - deployment.overlap
    latency, link = numbers.get("collective_latency", 0.0), numbers.get("link_bandwidth", math.inf)
    return RooflineTerms(
        overhead=numbers["step_overhead"] + model["layers"] * numbers.get("attention_call", 0.0),
        attention=(work.attention[0] / bandwidth, work.attention[1] / of_attention),
        weights=(work.common[0] / bandwidth, work.common[1] / of_weights),
        experts=(hot * work.experts[0] / bandwidth, hot * work.experts[1] / of_weights),
        reductions=work.reductions[0] * latency + work.reductions[1] / link,
        exchange=shown * (work.exchange[0] * latency + work.exchange[1] / link),
        together=work.together,
    )
