"""Measuring a decoder's step from the first weight to the law, and the result as plain data."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Any

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.hardware.measure.experts.law import StepLaw, fit
from lbopt.hardware.measure.experts.plan import Place, Sizes, places
from lbopt.hardware.measure.experts.shape import DecoderShape
from lbopt.hardware.measure.experts.sweep import Sweep, Timed
from lbopt.hardware.measure.measurement import today
from lbopt.hardware.measure.timing import Estimate
from lbopt.hardware.measure.torch_device import TorchDevice

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
            "constants": {name: _ends(one) for name, one in law.constants().items()},
            "parts": {
                name: {
                    **{which: _ends(part[which]) for which in part.names},
                    "typical_residual": part.typical,
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
    note
        Is told how far it is.
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


def _ends(one: Estimate) -> list[float]:
    return [one.value, one.low, one.high]
