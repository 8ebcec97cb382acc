"""The measurement as a whole, within one budget: what is to be measured, and each attention, layer and state in turn.

What is to be measured: which attention, which sizes, within which time.

The measurement as a whole, within one budget: each attention, then the products of layers, then power.

Attention and products share the budget evenly after what power needs; what fails after a law is known is a note, and
what has been measured is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import model_card
from lbopt.hardware.measure.attention import (
    DEFAULT_SHAPES,
    MOST_UNREST,
    READ_BYTES,
    AttentionShape,
    AttentionTimes,
    attention_shape,
    fit_law,
    grid,
    in_turn,
    measure_attention,
    pool_tokens,
)
from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.measure.power import EnergyCounter, PowerTimes, State, measure_power, seconds_needed, waiting_states
from lbopt.hardware.measure.products import ACCELERATOR_EDGE, Layer, LayerTimes, Product, layer_products, measure_layer
from lbopt.hardware.measure.timing import Progress

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


_MARGIN = 1.1
#: Requests of the products whose power is measured: few, where memory binds, and many.
_POWER_BATCHES = (8, 256)


@dataclass(slots=True)
class Measurement:
    """What was asked, of which device, and what was found."""

    config: MeasureConfig
    backend: str
    device: str
    dtype: str
    machine: dict[str, str]
    date: str
    attention: list[AttentionTimes] = field(default_factory=list)
    layers: list[LayerTimes] = field(default_factory=list)
    power: PowerTimes | None = None
    interrupted: bool = False
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def layers_of(config: MeasureConfig, backend: Backend) -> list[Layer]:
    """Return the layers whose products are timed on this device."""
    wanted = not backend.is_host if config.products is None else config.products
    return [layer_products(model_card(name), backend.itemsize) for name in config.layers] if wanted else []


def today() -> str:
    """Return the date that a result bears."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def measure(
    config: MeasureConfig, backend: Backend, progress: Progress, now: Callable[[], float] = time.monotonic
) -> Measurement:
    """Measure within the budget. Ctrl-C ends it with what has been measured.

    Parameters
    ----------
    config
        Sizes, batches, attention shapes, layers and the budget in seconds.
    backend
        The device.
    progress
        Shows progress.
    now
        Clock, seconds.
    """
    least, most = config.tokens(backend.is_host)
    shapes = [attention_shape(name) for name in config.attention]
    points = grid(least, most, config.points, config.batches)
    layers = layers_of(config, backend)
    _check_memory(config, backend, shapes, most)
    found = Measurement(
        config=config,
        backend=backend.name,
        device=backend.device,
        dtype=backend.dtype,
        machine=backend.account(),
        date=today(),
    )
    rng, begin = np.random.default_rng(config.seed), now()

    def attention(shape: AttentionShape, seconds: float) -> None:
        times = measure_attention(shape, points, config, backend, seconds=seconds, rng=rng, now=now, progress=progress)
        found.interrupted |= times.samples.interrupted
        if not times.points:
            return
        found.attention.append(times)
        fit_law(times, rng)
        if (unrest := times.samples.unrest()) > MOST_UNREST:
            found.notes.append(
                f"{shape.name}: the machine's pace varied by {unrest:.0%} from round to round, so other work shares "
                "it; a bend cannot be told from that, nor is the slope the device's own: measure again when it is idle"
            )

    def products(layer: Layer, seconds: float) -> None:
        times = measure_layer(layer, config, backend, most=most, seconds=seconds, rng=rng, now=now, progress=progress)
        found.interrupted |= times.samples.interrupted
        found.layers.append(times)

    def power(counter: EnergyCounter) -> None:
        try:
            held = [state() for state in states]
        except InputError as error:
            found.notes.append(f"power: {error}")
            return
        found.power = measure_power(
            held, counter, backend, seconds=config.power_seconds, rng=rng, now=now, progress=progress
        )
        found.interrupted = found.power.interrupted

    counter = backend.counter() if config.power else None
    states = _states(config, backend, shapes, layers, most) if counter is not None else []
    held_back = seconds_needed(len(states), config.power_seconds)
    if states and held_back > config.budget / 2:
        found.notes.append(
            f"power is left out: {len(states)} states take {held_back:.0f} s, more than half of the budget of "
            f"{config.budget:g} s; give a larger --budget, or shorter --power-seconds"
        )
        counter, held_back = None, 0.0
    stages: list[tuple[str, Callable[[float], None]]] = [
        *((shape.name, lambda seconds, shape=shape: attention(shape, seconds)) for shape in shapes),
        *((f"layer of {one.model}", lambda seconds, one=one: products(one, seconds)) for one in layers),
    ]
    try:
        for place, (name, stage) in enumerate(stages):
            if found.interrupted:
                break
            share = max(config.budget - held_back - (now() - begin), 0.0) / (len(stages) - place)
            try:
                stage(share)
            except InputError as error:  # what is measured is kept
                if not any(one.law for one in found.attention) and not found.interrupted:
                    raise
                found.notes.append(f"{name}: {error}")
        if counter is not None and not found.interrupted:
            power(counter)
    except KeyboardInterrupt:  # between two samples, while memory is filled
        found.interrupted = True
    found.seconds = now() - begin
    return found


def _states(
    config: MeasureConfig, backend: Backend, shapes: list[AttentionShape], layers: list[Layer], most: int
) -> list[Callable[[], State]]:
    """Return what makes each state in which power is measured; memory is taken when it is made."""
    found: list[Callable[[], State]] = [lambda state=state: state for state in waiting_states(backend)]  # type: ignore[misc]
    found.append(lambda: State("plain read", "reading", backend.reader(READ_BYTES)))

    def attends(shape: AttentionShape) -> State:
        pool, batch, count = pool_tokens(shape, backend, most // 8), max(config.batches), 0
        decode = in_turn(backend.decode(shape, pool), (most // 8 // batch,) * batch, pool)

        def call() -> None:
            nonlocal count
            count += 1
            decode(count)

        return State(f"attention {shape.name}", "busy", call)

    found += [lambda shape=shape: attends(shape) for shape in shapes]  # type: ignore[misc]
    found += [
        lambda layer=layer, batch=batch: State(  # type: ignore[misc]
            f"products {layer.model}, {batch} requests", "busy", backend.multiply(layer.products)(batch)
        )
        for layer in layers
        for batch in _POWER_BATCHES
    ]
    square = Product("square", ACCELERATOR_EDGE, ACCELERATOR_EDGE)
    found.append(lambda: State("square product", "arithmetic", backend.multiply((square,))(ACCELERATOR_EDGE)))
    return found


def _check_memory(config: MeasureConfig, backend: Backend, shapes: list[AttentionShape], most: int) -> None:
    """Refuse in advance what does not fit."""
    free = backend.free_bytes()
    if free is None:
        return
    where = f"{backend.name} on {backend.device} has {_size(free)} free"
    for shape in shapes:
        pool = pool_tokens(shape, backend, most) * shape.values_per_token * backend.itemsize
        need = int(_MARGIN * (pool + backend.scratch_bytes(shape, most)))
        if need > free:
            raise InputError(
                f"the KV of {most:,} tokens of {shape.name} in {backend.dtype} and its scratch need {_size(need)}, and "
                f"{where}; give a smaller --most"
            )
        if config.read and need + _MARGIN * READ_BYTES > free:
            raise InputError(
                f"the KV of {shape.name} and a plain read need {_size(need + _MARGIN * READ_BYTES)}, and {where}; "
                "leave the read out with --no-read"
            )


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:,.2f} GB"
