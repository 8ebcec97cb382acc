"""A decoder's step from the first weight to the law, and the result as plain data.

The law of a decode step: forecast from bytes and launches, and fitted to what was timed.

    layer of experts   c0 + c1 * active + p * requests
    other of a layer   a0 + q * requests + t * tokens
    head               h0 + r * requests

so that a step of L layers takes other + per_request * requests + per_token * tokens + L * (c0 + c1 * active) with
other = L a0 + h0 and per_request = L (p + q) + r: the constants of `ExpertStepTime`. Least squares of relative errors;
intervals are 95 % ones of the fit, whose residuals are misfit rather than noise.

The law of experts is that of reading them. It is fitted where an expert has at most `MOST_ROWS` requests on average,
one block of rows; with more, an expert's weights are read again for the next block and arithmetic begins to bind.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.hardware.fit.law import LeastSquares, relative_least_squares
from lbopt.hardware.measure.measurement import today
from lbopt.hardware.measure.timing import Estimate
from lbopt.hardware.measure.torch_backend import TorchDevice
from lbopt.hardware.step_time import ExpertStepTime
from tools.expert_step.plan import DecoderShape, Place, Sizes, places
from tools.expert_step.sweep import Sweep, Timed

#: Requests of an active expert, on average, up to which a layer of experts is bound by reading them.
MOST_ROWS = 16

#: Launches of the kernels here: a layer's experts, and the rest of a layer.
LAUNCHES = {"experts": 6, "attention": 6}


@dataclass(frozen=True, slots=True)
class PartFit:
    """A part's coefficients, and how far its points lie from the line, relative to the points."""

    names: tuple[str, ...]
    numbers: LeastSquares

    def __getitem__(self, name: str) -> Estimate:
        """Return a coefficient."""
        place, numbers = self.names.index(name), self.numbers
        return Estimate(*(float(end[place]) for end in (numbers.estimates, numbers.low, numbers.high)))

    @property
    def worst(self) -> float:
        """Largest residual."""
        return float(np.abs(self.numbers.residuals).max())

    def at(self, row: Sequence[float]) -> float:
        """Return the seconds at a row of the variables."""
        return float(self.numbers.estimates @ row)


@dataclass(frozen=True, slots=True)
class StepLaw:
    """The three parts of a decoder's step, seconds; the first two of one layer."""

    shape: DecoderShape
    experts: PartFit
    attention: PartFit
    head: PartFit

    def constants(self) -> dict[str, Estimate]:
        """Return the constants of the whole decoder by the names of `ExpertStepTime`."""
        layers = self.shape.layers
        return {
            "other_seconds": _sum((layers, self.attention["fixed"]), (1, self.head["fixed"])),
            "seconds_per_request": _sum(
                (layers, self.experts["request"]), (layers, self.attention["request"]), (1, self.head["request"])
            ),
            "seconds_per_token": _sum((layers * self._share(), self.attention["token"])),
            "layer_seconds": self.experts["fixed"],
            "seconds_per_expert": self.experts["active"],
        }

    def step_time(self) -> ExpertStepTime:
        """Return the step time that studies use; what a fit has below zero is zero there."""
        found, shape = {name: max(0.0, one.value) for name, one in self.constants().items()}, self.shape
        return ExpertStepTime(
            found["other_seconds"],
            found["seconds_per_request"],
            found["seconds_per_token"],
            found["layer_seconds"],
            found["seconds_per_expert"],
            shape.layers,
            shape.experts,
            shape.experts_per_token,
        )

    def ratio(self, most: int = 128, least: int = 16) -> float:
        """Return a layer's time with `most` active experts over that with `least`, requests left out."""
        fixed, each = self.experts["fixed"].value, self.experts["active"].value
        return (fixed + most * each) / (fixed + least * each)

    def of(self, place: Place, layers: int) -> float:
        """Return the law's seconds of a place over so many layers."""
        total = 0.0
        if place.active:
            total += layers * self.experts.at((1, place.active, place.requests))
        if place.context:
            total += layers * self.attention.at((1, place.requests, tokens_of(self.shape, place, layers)))
        if place.part in ("head", "step"):
            total += self.head.at((1, place.requests))
        return total

    def _share(self) -> float:
        """Return the share of layers that read every token."""
        return 1.0 if self.shape.window is None else 0.5


def tokens_of(shape: DecoderShape, place: Place, layers: int) -> float:
    """Return the tokens that a layer reads, the mean over layers."""
    return place.requests * float(np.mean([shape.context(layer, place.context) for layer in range(layers)]))


def is_read(place: Place, shape: DecoderShape) -> bool:
    """Return whether a place has so few requests an expert that reading experts binds."""
    return place.requests * shape.experts_per_token <= MOST_ROWS * place.active


def fit(timed: Sequence[Timed], shape: DecoderShape, layers: int) -> StepLaw:
    """Fit the law to what was timed of so many layers; steps and places with generalists are left out."""

    def of(part: str) -> list[Timed]:
        return [one for one in timed if one.place.part == part and not one.place.generalists]

    attention, head = of("attention"), of("head")
    experts = [one for one in of("experts") if is_read(one.place, shape)]
    return StepLaw(
        shape=shape,
        experts=fit_part(
            ("fixed", "active", "request"),
            [(1, one.place.active, one.place.requests) for one in experts],
            [one.median / layers for one in experts],
        ),
        attention=fit_part(
            ("fixed", "request", "token"),
            [(1, one.place.requests, tokens_of(shape, one.place, layers)) for one in attention],
            [one.median / layers for one in attention],
        ),
        head=fit_part(("fixed", "request"), [(1, one.place.requests) for one in head], [one.median for one in head]),
    )


def fit_part(names: tuple[str, ...], rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> PartFit:
    """Fit a sum of terms by least squares of relative errors.

    Parameters
    ----------
    rows
        What each coefficient is multiplied by, a row a point.
    """
    if len(rows) <= len(names):
        raise InputError(f"{len(rows)} points tell no {', '.join(names)}; expected {len(names) + 1} or more")
    try:
        numbers = relative_least_squares(np.asarray(rows, dtype=np.float64), np.asarray(seconds))
    except InputError:
        raise InputError(f"the points do not tell {', '.join(names)} apart; vary requests and experts") from None
    return PartFit(names, numbers)


def forecast(shape: DecoderShape, rate: Estimate, launch: Estimate, flops: float) -> dict[str, Estimate]:
    """Return the constants that bytes and launches alone make, by the names of `ExpertStepTime`.

    A request's own value is its vectors, read and written some five times between kernels; the high end is all of its
    arithmetic beside experts and within, hidden behind nothing.

    Parameters
    ----------
    rate
        Bytes a second that a kernel reads.
    launch
        Seconds of a kernel that has nothing to do.
    flops
        Floating-point operations a second, for the high end of a request.
    """

    def of(num_bytes: float, launches: float) -> Estimate:
        both = zip(rate.rate(num_bytes).ends, launch.ends, strict=True)
        return Estimate(*(reading + launches * each for reading, each in both))

    layers, chosen = shape.layers, shape.experts_per_token
    other = of(layers * shape.attention_bytes + shape.head_bytes, layers * LAUNCHES["attention"] + 3)
    vectors = layers * 5 * 2 * (shape.hidden + shape.heads * shape.head_dim + chosen * (shape.hidden + shape.width))
    active = layers * (shape.attention_bytes + chosen * shape.expert_bytes) + shape.head_bytes
    full = layers if shape.window is None else layers / 2
    return {
        "other_seconds": other,
        "seconds_per_request": Estimate(vectors / rate.value, 0.0, active / flops),
        "seconds_per_token": of(full * shape.token_bytes, 0),
        "layer_seconds": of(shape.experts * shape.hidden * 2, LAUNCHES["experts"]),
        "seconds_per_expert": of(shape.expert_bytes, 0),
    }


def _sum(*terms: tuple[float, Estimate]) -> Estimate:
    """Return a sum of independent estimates."""
    value = sum(times * one.value for times, one in terms)
    half = float(np.sqrt(sum((times * (one.high - one.low) / 2) ** 2 for times, one in terms)))
    return Estimate(value, value - half, value + half)


#: Share of the free memory that weights and cache may take; graphs, outputs and a plain read need the rest.
_SHARE = 0.85
#: Fewer layers than this may find their weights cached.
_FEWEST_LAYERS = 4
#: Steps whose kernels are launched one by one, requests and experts a request.
_UNCAPTURED = (8, 64)


@dataclass(slots=True)
class StepTimes:
    """What was measured of a decoder.

    Parameters
    ----------
    shape, layers
        The decoder, and how many of its layers were in memory.
    timed
        Places and samples.
    date, machine
        When, and on what.
    plain_read
        Bytes a second at which a large block is read.
    tiles, errors, uncaptured
        Blocks of the products by requests; errors against plain torch; seconds of steps that were not captured.
    seconds
        Of the whole measurement.
    """

    shape: DecoderShape
    layers: int
    timed: list[Timed]
    date: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    plain_read: float = 0.0
    tiles: dict[int, Any] = field(default_factory=dict)
    errors: list[dict[str, float]] = field(default_factory=list)
    uncaptured: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def law(self) -> StepLaw:
        """The law that is fitted to it."""
        return fit(self.timed, self.shape, self.layers)

    def errors_of_law(self, part: str = "step") -> dict[Place, float]:
        """Return by how much the law misses each place of a part, relative to what was timed."""
        law = self.law
        return {
            one.place: law.of(one.place, self.layers) / one.median - 1 for one in self.timed if one.place.part == part
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: five digits of the middle, the least and the greatest sample."""
        law = self.law
        parts = {"experts": law.experts, "attention": law.attention, "head": law.head}
        return {
            "model": self.shape.name,
            "layers": self.layers,
            "date": self.date,
            "machine": dict(self.machine),
            "plain_read": self.plain_read,
            "tiles": {str(requests): tiles for requests, tiles in self.tiles.items()},
            "errors": self.errors,
            "uncaptured": {str(requests): seconds for requests, seconds in self.uncaptured.items()},
            "constants": {name: list(one.ends) for name, one in law.constants().items()},
            "parts": {
                name: {
                    **{which: list(part[which].ends) for which in part.names},
                    "typical_residual": part.numbers.rmse,
                    "worst_residual": part.worst,
                }
                for name, part in parts.items()
            },
            "columns": ["part", "requests", "context", "active", "generalists", "median", "least", "most"],
            "rows": [
                [
                    *astuple(one.place),
                    *(float(f"{value:.5g}") for value in (one.median, min(one.seconds), max(one.seconds))),
                ]
                for one in self.timed
            ],
        }


def measure_steps(
    model: str, note: Callable[[str], None], *, device: str | None = None, layers: int | None = None, budget: float = 60
) -> StepTimes:
    """Time the step of a model with random weights on a device with Triton.

    Parameters
    ----------
    model
        A model card with grouped attention and experts in every layer.
    device
        As torch names it; None takes the first accelerator.
    layers
        Layers in memory; None takes as many as fit.
    budget
        Seconds of the rounds; weights, choice of blocks and capture take half a minute more.
    """
    begin, shape, sizes = time.perf_counter(), DecoderShape.of(model), Sizes()
    try:
        torch: Any = importlib.import_module("torch")
        importlib.import_module("triton")
    except ImportError as error:
        raise BackendUnavailableError(
            f"the step of a decoder is timed with PyTorch and Triton, and {error.name} is not installed; "
            "install 'lbopt[measure]' on a machine with an NVIDIA GPU"
        ) from None
    place = TorchDevice(torch, device)
    if place.kind != "cuda":
        raise InputError(f"the step of a decoder is timed on cuda; the device is {place.name}")
    held = layers or fitting_layers(shape, place.free_bytes() or 0, sizes)
    if not 1 <= held <= shape.layers:
        raise InputError(f"layers is {held}; {model} has {shape.layers}")
    sweep = Sweep(shape, held, 2 * sizes.most_tokens, place.name)
    found = StepTimes(shape, held, [], today(), place.account(), sweep.bandwidth())
    note(f"{held} of {shape.layers} layers in memory; a plain read reaches {found.plain_read / 1e12:.2f} TB/s")
    sweep.tune(sizes.requests)
    found.tiles = dict(getattr(sweep.parts, "tiles", {}))
    found.errors = [sweep.check(8, 512, shape.experts // 3), sweep.check(64, 1024, shape.experts - 28)]
    note(f"blocks chosen; largest error against plain torch {max(max(one.values()) for one in found.errors):.1e}")
    found.timed = sweep.time(places(shape, sizes), 15, budget, note)
    found.uncaptured = {
        requests: sweep.uncaptured(Place("step", requests, 512, min(shape.experts, 2 * requests)))
        for requests in _UNCAPTURED
    }
    found.seconds = time.perf_counter() - begin
    return found


def fitting_layers(shape: DecoderShape, free: int, sizes: Sizes) -> int:
    """Return how many layers fit into so many bytes, beside the head, the embedding and the cache; an error for few."""
    rest = 2 * shape.head_bytes + 2 * sizes.most_tokens * shape.token_bytes
    a_layer = shape.experts * shape.expert_bytes + shape.attention_bytes
    held = min(shape.layers, int((_SHARE * free - rest) // a_layer))
    if held < min(_FEWEST_LAYERS, shape.layers):
        need = (min(_FEWEST_LAYERS, shape.layers) * a_layer + rest) / _SHARE
        raise InputError(
            f"{_FEWEST_LAYERS} layers of {shape.name}, its head and a cache need {need / 1e9:.0f} GB, and "
            f"{free / 1e9:.0f} GB are free"
        )
    return held
