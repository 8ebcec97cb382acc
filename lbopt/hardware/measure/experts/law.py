"""The law of a decode step: forecast from bytes and launches, and fitted to what was timed.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.measure.experts.plan import Place
from lbopt.hardware.measure.experts.shape import DecoderShape
from lbopt.hardware.measure.experts.sweep import Timed
from lbopt.hardware.measure.timing import Estimate
from lbopt.hardware.step_time import ExpertStepTime
from lbopt.statistics import student_quantile

#: Requests of an active expert, on average, up to which a layer of experts is bound by reading them.
MOST_ROWS = 16

#: Launches of the kernels here: a layer's experts, and the rest of a layer.
LAUNCHES = {"experts": 6, "attention": 6}


@dataclass(frozen=True, slots=True)
class PartFit:
    """A part's coefficients, and how far its points lie from the line, relative to the points."""

    names: tuple[str, ...]
    values: tuple[Estimate, ...]
    residuals: NDArray[np.float64]

    def __getitem__(self, name: str) -> Estimate:
        """Return a coefficient."""
        return self.values[self.names.index(name)]

    @property
    def typical(self) -> float:
        """Root of the mean squared residual."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def worst(self) -> float:
        """Largest residual."""
        return float(np.abs(self.residuals).max())

    def at(self, row: Sequence[float]) -> float:
        """Return the seconds at a row of the variables."""
        return float(np.dot([one.value for one in self.values], row))


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
    """Fit the law to what was timed of so many layers; steps and places with generalists are left out.

    Parameters
    ----------
    timed
        Places and their samples.
    shape
        The decoder.
    layers
        Layers of each sample.
    """

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
    names
        Of the coefficients.
    rows
        What each coefficient is multiplied by, a row a point.
    seconds
        Of each point, above zero.
    """
    free = len(rows) - len(names)
    if free < 1:
        raise InputError(f"{len(rows)} points tell no {', '.join(names)}; expected {len(names) + 1} or more")
    weighted = np.asarray(rows, dtype=np.float64) / np.asarray(seconds)[:, None]
    solution, _, rank, _ = np.linalg.lstsq(weighted, np.ones(len(rows)), rcond=None)
    if rank < len(names):
        raise InputError(f"the points do not tell {', '.join(names)} apart; vary requests and experts")
    residuals = weighted @ solution - 1
    spread = np.sqrt(residuals @ residuals / free * np.diag(np.linalg.inv(weighted.T @ weighted)))
    half = student_quantile(free) * spread
    values = tuple(Estimate(float(v), float(v - h), float(v + h)) for v, h in zip(solution, half, strict=True))
    return PartFit(names, values, residuals)


def forecast(shape: DecoderShape, rate: Estimate, launch: Estimate, flops: float) -> dict[str, Estimate]:
    """Return the constants that bytes and launches alone make, by the names of `ExpertStepTime`.

    A request's own value is its vectors, read and written some five times between kernels; the high end is all of its
    arithmetic beside experts and within, hidden behind nothing.

    Parameters
    ----------
    shape
        The decoder.
    rate
        Bytes a second that a kernel reads.
    launch
        Seconds of a kernel that has nothing to do.
    flops
        Floating-point operations a second, for the high end of a request.
    """

    def of(num_bytes: float, launches: float) -> Estimate:
        return Estimate(
            num_bytes / rate.value + launches * launch.value,
            num_bytes / rate.high + launches * launch.low,
            num_bytes / rate.low + launches * launch.high,
        )

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
