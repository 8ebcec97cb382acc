"""The measurement as a whole, within one budget: each attention, then the products of layers, then power.

Attention and products share the budget evenly after what power needs; what fails after a law is known is a note, and
what has been measured is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import model_card
from lbopt.hardware.measure.attention import AttentionShape, attention_shape, grid
from lbopt.hardware.measure.attention_times import (
    MOST_UNREST,
    READ_BYTES,
    AttentionTimes,
    fit_law,
    in_turn,
    measure_attention,
    pool_tokens,
)
from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.measure.config import MeasureConfig
from lbopt.hardware.measure.power import EnergyCounter, PowerTimes, State, measure_power, seconds_needed, waiting_states
from lbopt.hardware.measure.products import ACCELERATOR_EDGE, Layer, LayerTimes, Product, layer_products, measure_layer
from lbopt.hardware.measure.timing import Progress

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
