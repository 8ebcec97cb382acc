"""Step time from first principles: what a step must read, compute and send, over the rates at which a device does it.

The terms of the roofline law as numbers: the work of a step over the rates of a card.

This is the pure numeric core: it takes plain constants, so that a study of uncertainty can draw thousands of sets of
them. Formulas are in `roofline.py`.

Where the seconds of a step go: by term, and by what binds it.

    seconds = overhead + max_g (attention * L_g + weights[n_g] + reductions[n_g]) + experts[N] + exchange[N]

for L_g tokens and n_g requests of worker g and N = sum_g n_g. With BW = bandwidth * memory efficiency, F = arithmetic *
compute efficiency, TP devices a worker, q query tokens a request:

* attention, per cached token: max(bytes / BW, q * FLOP / F). Both are divided over TP, but for MLA's latent vectors,
  which every device reads. An attention kernel over no tokens, where the card knows it, is overhead.
* weights that every worker reads whole: max(bytes / BW, 2 P q n / F) / TP, nothing for n = 0.
* experts, of all layers that have them: a device reads U of them and computes k a token, max(U * bytes / BW,
  2 P k q N / F). Expert parallelism: the D = G * TP devices each hold a part, so U = max(1, U(q N) / D) and k N / D;
  all meet there, the term is outside of the maximum. It is the *mean* device, and the busiest takes 1 / balancedness
  times as long. Without: U(q n) / TP, inside of the maximum. U(n) as in `experts.py`.
* reductions: two all-reduces a layer within a worker of TP > 1. exchange: two all-to-alls a layer with experts, each
  latency + bytes / link; dispatch in the weights' precision, combine in 16 bit, less the share `overlap` that is hidden
  behind computation. Nothing else overlaps with anything. The cards' link is mostly that between nodes; a group within
  one node is nearer to its high end, and to a low latency.
* overhead: what no term accounts for. On large clusters it is most of the step, and known worst.

Worked example: attention over 85,000 tokens of DeepSeek-V3 in bf16 (576 values * 61 layers * 2 B = 70,272 B a token,
5.97312e9 B in all; 2 * 128 * (576 + 512) * 61 = 16,990,208 FLOP, 1.44417e12 in all), one device, one query token.

    device        bandwidth    read     efficiency, so  arithmetic        efficiency, so     bound
    a100          2.039 TB/s   2.929 ms   * 0.85   = 3.446 ms    312.0 TFLOP/s * 0.6   = 7.715 ms  compute
    ascend-910b   1.600 TB/s   3.733 ms   * 0.8    = 4.666 ms    353.9 TFLOP/s * 0.65  = 6.278 ms  compute
    ascend-910c   3.200 TB/s   1.867 ms   * 0.841  = 2.220 ms    752.0 TFLOP/s * 0.654 = 2.936 ms  compute
    ascend-910c-die 1.600 TB/s 3.733 ms   * 0.841  = 4.439 ms    376.0 TFLOP/s * 0.654 = 5.873 ms  compute
    b200          8.000 TB/s   0.747 ms   * 0.85   = 0.878 ms   2250.0 TFLOP/s * 0.6   = 1.070 ms  compute
    gb200         8.000 TB/s   0.747 ms   * 0.85   = 0.878 ms   2500.0 TFLOP/s * 0.6   = 0.963 ms  compute
    h100          3.350 TB/s   1.783 ms   * 0.8955 = 1.991 ms    989.4 TFLOP/s * 0.667 = 2.188 ms  compute
    h20           4.000 TB/s   1.493 ms   * 0.85   = 1.757 ms    148.0 TFLOP/s * 0.75  = 13.011 ms  compute
    h200          4.800 TB/s   1.244 ms   * 0.85   = 1.464 ms    989.4 TFLOP/s * 0.667 = 2.188 ms  compute
    h800          3.350 TB/s   1.783 ms   * 0.8955 = 1.991 ms    989.4 TFLOP/s * 0.667 = 2.188 ms  compute
    mi300x        5.300 TB/s   1.127 ms   * 0.7    = 1.610 ms   1307.4 TFLOP/s * 0.4   = 2.762 ms  compute
    mi325x        6.000 TB/s   0.996 ms   * 0.7    = 1.422 ms   1307.4 TFLOP/s * 0.4   = 2.762 ms  compute
    mi355x        8.000 TB/s   0.747 ms   * 0.7    = 1.067 ms   2516.6 TFLOP/s * 0.4   = 1.435 ms  compute
    tpu-v5p       2.765 TB/s   2.160 ms   * 0.75   = 2.880 ms    459.0 TFLOP/s * 0.5   = 6.293 ms  compute
    tpu-v6e       1.640 TB/s   3.642 ms   * 0.75   = 4.856 ms    918.0 TFLOP/s * 0.5   = 3.146 ms  memory

Absorbed MLA sits at the ridge or above it, so a cache in fp8 halves the reading and not the time.

Source: a roofline of one's own from public sizes; experts as in ELDR (arXiv 2607.00466); constants on the cards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import DeviceCard
from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.quantity import Quantity
from lbopt.hardware.step_time.barrier_form import AffineStepTime, BarrierForm, number_text
from lbopt.hardware.step_time.step_work import Deployment, Formats, step_work
from lbopt.spec import unknown

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


#: What can bind a step.
KINDS = ("memory", "compute", "collective", "overhead")


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """Seconds of steps in parts.

    Parameters
    ----------
    terms
        float64 (...) of each of attention, weights, experts, reductions, exchange and overhead; they sum to the step.
        Where a term is a worker's own, it is that of the worker for whom all wait (the first of several).
    by_kind
        float64 (...) of each of `KINDS`; they sum to the step as well. Attention, weights and experts are memory where
        reading takes longer than computing, else compute.
    """

    terms: dict[str, NDArray[np.float64]]
    by_kind: dict[str, NDArray[np.float64]]

    @property
    def seconds(self) -> NDArray[np.float64]:
        """float64 (...), the whole step."""
        total: NDArray[np.float64] = np.sum(list(self.terms.values()), axis=0)
        return total

    @property
    def kind(self) -> NDArray[np.str_]:
        """str (...), the kind with the largest share of the step."""
        largest = np.argmax(np.stack([self.by_kind[kind] for kind in KINDS]), axis=0)
        names: NDArray[np.str_] = np.array(KINDS)[largest]
        return names


def break_down(terms: RooflineTerms, loads: NDArray[Any], running: NDArray[np.int64]) -> Breakdown:
    """Take steps apart; `loads` and `running` are (..., G)."""
    form = terms.form()
    own = form.per_token * loads + form.of_running[running]
    pacemaker = own.argmax(axis=-1)[..., None]
    load = np.take_along_axis(loads, pacemaker, axis=-1)[..., 0]
    requests = np.take_along_axis(running, pacemaker, axis=-1)[..., 0]
    met = running.sum(axis=-1) if terms.together else requests
    read_and_computed = {
        "attention": tuple(part * load for part in terms.attention),
        "weights": tuple(part[requests] for part in terms.weights),
        "experts": tuple(part[met] for part in terms.experts),
    }
    sent = {
        "reductions": terms.reductions[requests],
        "exchange": terms.exchange[met] if terms.together else np.zeros(load.shape),
    }
    overhead = np.full(load.shape, terms.overhead)
    by_kind = {kind: np.zeros(load.shape) for kind in KINDS}
    parts: dict[str, NDArray[np.float64]] = {}
    for name, (reading, computing) in read_and_computed.items():
        parts[name] = np.maximum(reading, computing)
        by_kind["memory"] += np.where(reading >= computing, reading, 0.0)
        by_kind["compute"] += np.where(reading >= computing, 0.0, computing)
    by_kind["collective"] += sent["reductions"] + sent["exchange"]
    by_kind["overhead"] += overhead
    return Breakdown(parts | sent | {"overhead": overhead}, by_kind)


def kinds_of(names: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the places of kinds in `KINDS`."""
    order = np.argsort(KINDS)
    places: NDArray[np.int64] = order[np.searchsorted(np.array(KINDS)[order], names)]
    return places


def _of_messages(put: Deployment) -> dict[str, float]:
    """Return overlap and balancedness where they are used: version 0.1 had neither."""
    known = {"overlap": (put.overlap, 0.0), "balancedness": (put.balancedness, 1.0)}
    return {option: value for option, (value, unused) in known.items() if value != unused}


def _nominal(quantity: Quantity) -> float:
    return quantity.value


@dataclass(frozen=True, slots=True)
class RooflineStepTime:
    """Seconds of a step of a model on a device.

    Parameters
    ----------
    model, device
        Their cards.
    deployment
        How the one stands on the other.
    replaced
        Constants to be taken instead of those of the cards, by the names of `quantities`.
    cards
        What device and model are called in `name`, where that is not by their own names: paths of files.
    """

    model: ModelCard
    device: DeviceCard
    deployment: Deployment = field(default_factory=Deployment)
    replaced: Mapping[str, float] = field(default_factory=dict)
    cards: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        known = self._needed()
        for name in self.replaced:
            if name not in known:
                raise unknown("constant of a roofline", name, known, remark=self._not_needed(name))
        if self.deployment.devices_per_worker > self.model["heads"]:
            raise InputError(
                f"devices_per_worker (tp) is {self.deployment.devices_per_worker}; expected at most the "
                f"{self.model['heads']} heads of {self.model.name}, which they share"
            )
        self.form(1, 1)  # asks the card for every constant that the law needs, and refuses values that cannot be

    @property
    def name(self) -> str:
        """As users name it."""
        put = self.deployment
        parts = put.words(*(self.cards or (self.device.name, self.model.name)))
        parts += [] if put.query_tokens == 1 else [f"query_tokens={put.query_tokens}"]
        parts += [f"{option}={number_text(value)}" for option, value in _of_messages(put).items()]
        parts += [f"{name}={number_text(value)}" for name, value in self.replaced.items()]
        return "roofline:" + ",".join(parts)

    @property
    def query_tokens(self) -> int:
        """Tokens of a request that a step computes."""
        return self.deployment.query_tokens

    def quantities(self) -> dict[str, Quantity]:
        """Return the card constants that the law uses and the caller has not fixed, by name, with their ends."""
        fixed = set(self.replaced) | {
            name for name in ("kv_bytes", "weight_bytes") if getattr(self.deployment, name) is not None
        }
        return {name: self._quantity(name) for name in self._needed() if name not in fixed}

    def constants(self, draw: Callable[[Quantity], float] = _nominal) -> dict[str, float]:
        """Return one number for every constant that the law uses.

        Parameters
        ----------
        draw
            Gives a number for a quantity that the caller has not fixed, e.g. one between its ends; by default its
            value. It is called once for each, always in the same order.
        """
        drawn = {name: float(draw(quantity)) for name, quantity in self.quantities().items()}
        for name in ("kv_bytes", "weight_bytes"):
            chosen = getattr(self.deployment, name)
            if chosen is not None:
                drawn[name] = float(chosen)
        return drawn | {name: float(value) for name, value in self.replaced.items()}

    def with_constants(self, numbers: Mapping[str, float]) -> RooflineStepTime:
        """Return the same law with these constants instead of the cards'; unknown names are refused."""
        return replace(self, replaced={**self.replaced, **numbers})

    def terms(self, num_workers: int, slots_per_worker: int) -> RooflineTerms:
        """Return the terms for G workers of B slots, in seconds."""
        return roofline_terms(self.constants(), self.model, self.deployment, num_workers, slots_per_worker)

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form for G workers of B slots."""
        return self.terms(num_workers, slots_per_worker).form()

    def frozen(self, num_workers: int, requests: int) -> AffineStepTime:
        """Return what is left of the law where every worker always runs so many requests: an affine one."""
        form = self.form(num_workers, requests)
        together = form.of_active[-1] if form.of_active.size else 0.0
        return AffineStepTime(float(form.fixed + form.of_running[-1] + together), form.per_token)

    def breakdown(self, loads: NDArray[Any], running: NDArray[np.int64]) -> Breakdown:
        """Return the seconds of steps by term and by what binds them.

        Parameters
        ----------
        loads, running
            (..., G), resident tokens and running requests of every worker.
        """
        if loads.shape != running.shape or not loads.size:
            raise InputError(
                f"loads and running requests have shapes {loads.shape} and {running.shape}; expected the same"
            )
        if (loads < 0).any() or (running < 0).any():
            raise InputError("loads or running requests are negative; expected zero or more")
        return break_down(self.terms(loads.shape[-1], int(running.max())), loads, running)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data, every constant with it."""
        put = self.deployment
        return {
            "kind": "roofline",
            "device": self.device.name,
            "model": self.model.name,
            "devices_per_worker": put.devices_per_worker,
            "expert_parallel": put.expert_parallel,
            "query_tokens": put.query_tokens,
            "gate": None if put.gate is None else list(put.gate),
            **_of_messages(put),
            "constants": self.constants(),
        }

    def _needed(self) -> list[str]:
        """Name the constants that the law uses, in a fixed order."""
        put = self.deployment
        names = ["memory_bandwidth", "memory_efficiency", "flops_16bit", "compute_efficiency", "step_overhead"]
        # By the format, not by a drawn number of bytes: a device does not change its arithmetic between two draws.
        nominal = self.model.quantities["weight_bytes"].value
        if (put.weight_bytes or nominal) <= 1:
            names.append("flops_8bit")
        if put.devices_per_worker > 1 or (put.expert_parallel and self.model.moe_layers):
            names += ["link_bandwidth", "collective_latency"]
        if "attention_call" in self.device.constants:
            names.append("attention_call")
        formats = ["kv_bytes", "weight_bytes"]
        return [*names, *formats, *(["common_bytes"] if "common_bytes" in self.model.quantities else [])]

    def _quantity(self, name: str) -> Quantity:
        return self.model.quantities[name] if name in self.model.quantities else self.device[name]

    def _not_needed(self, name: str) -> str:
        if name in ("flops_8bit", "link_bandwidth", "collective_latency", "attention_call"):
            return " (this deployment does not use it)"
        return ""
