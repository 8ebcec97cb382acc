"""What is to be measured: which attention, which sizes, within which time."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.measure.attention import DEFAULT_SHAPES, attention_shape

#: Resident tokens of one call, least and most, where the user does not say: for a host and for an accelerator.
HOST_TOKENS = (1024, 65_536)
ACCELERATOR_TOKENS = (16_384, 2_097_152)
#: Models whose layers are multiplied where the user names none.
DEFAULT_LAYERS = ("qwen3-30b-a3b", "llama-3-70b")

#: More places and workers than these leave no budget for rounds.
MOST_POINTS, MOST_WORKERS = 200, 1_024


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """Options of a measurement.

    Parameters
    ----------
    attention
        Names of attention shapes, one law each.
    batches
        Requests of a call; several tell a cost per request from one per token.
    least, most
        Resident tokens of a call; None takes what suits the kind of device.
    points
        Places of the geometric grid between them, for each batch size.
    workers
        Workers of the emulated barrier.
    budget
        Seconds for everything.
    target
        Relative half-width of a median at which repetition stops.
    read, barrier
        Whether to time a plain read of memory, and the barrier.
    products, layers, layer_batches
        Whether the matrix products of a layer are timed (None: on accelerators), of which models, at which numbers of
        requests.
    power, power_seconds
        Whether power is measured where the device counts its energy, and the length of a window, seconds.
    seed
        Of the order of visits and of the bootstrap.
    """

    attention: tuple[str, ...] = DEFAULT_SHAPES
    batches: tuple[int, ...] = (1, 8)
    least: int | None = None
    most: int | None = None
    points: int = 9
    workers: int = 8
    budget: float = 60.0
    target: float = 0.02
    read: bool = True
    barrier: bool = True
    products: bool | None = None
    layers: tuple[str, ...] = DEFAULT_LAYERS
    layer_batches: tuple[int, ...] = (1, 8, 32, 64, 128, 256, 512, 1024)
    power: bool = True
    power_seconds: float = 2.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.attention:
            attention_shape(name)
        for name in ("attention", "batches", "layers", "layer_batches"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise InputError(f"{name} is {', '.join(map(str, values)) or 'empty'}; expected different values")
        for batch in (*self.batches, *self.layer_batches):
            if batch < 1:
                raise InputError(f"batch is {batch}; expected at least one request")
        for name in ("least", "most"):
            tokens = getattr(self, name)
            if tokens is not None and tokens < 1:
                raise InputError(f"{name} is {tokens}; expected a positive number of resident tokens")
        if self.points < 6:
            raise InputError(f"points is {self.points}; fewer than 6 do not tell a line from a bend")
        if self.workers < 2:
            raise InputError(f"workers is {self.workers}; a barrier needs at least 2")
        for name, most in (("points", MOST_POINTS), ("workers", MOST_WORKERS)):
            if getattr(self, name) > most:
                raise InputError(
                    f"{name} is {getattr(self, name):,}; every one is timed in every round, so at most {most:,}"
                )
        if not (math.isfinite(self.budget) and self.budget > 0):
            raise InputError(f"budget is {self.budget}; expected seconds above 0")
        if not (math.isfinite(self.power_seconds) and self.power_seconds > 0):
            raise InputError(f"power_seconds is {self.power_seconds}; expected seconds above 0")
        if not 0 < self.target < 1:
            raise InputError(f"target is {self.target}; expected a relative error between 0 and 1")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")

    def tokens(self, is_host: bool) -> tuple[int, int]:
        """Return least and most resident tokens; the most has to be at least 8 times the least."""
        least, most = HOST_TOKENS if is_host else ACCELERATOR_TOKENS
        if self.least is None and self.most is not None:
            least = max(1, min(least, self.most // 64))
        if self.most is None and self.least is not None:
            most = max(most, 64 * self.least)
        least, most = self.least or least, self.most or most
        if most < 8 * least:
            raise InputError(
                f"tokens from {least} to {most} tell no slope; the most has to be at least 8 times the least"
            )
        return least, most

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain data."""
        return asdict(self)
