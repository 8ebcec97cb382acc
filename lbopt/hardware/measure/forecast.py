"""What a card forecasts of a measurement, made from documents alone and before the measurement.

The forecasts are those of the roofline (`lbopt/hardware/step_time/roofline.py`), for one layer: attention by the
resident token and products by the batch take the longer of bytes over ``bandwidth x efficiency`` and arithmetic over
``rate x efficiency``; power is the card's idle and peak, and a waiting device draws the share of the way that a price
takes (`lbopt/hardware/price.py`). The ends are those that the card's ends give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbopt.hardware.cards.device import DeviceCard
from lbopt.hardware.measure.attention import SHAPES, AttentionShape
from lbopt.hardware.measure.measurement import Measurement
from lbopt.hardware.measure.power import SPINS
from lbopt.hardware.measure.products import Layer, whole_layers
from lbopt.hardware.measure.timing import Estimate
from lbopt.hardware.price import SPIN
from lbopt.hardware.quantity import Quantity

_Key = tuple[str, str, int | None, int | None]
_NEEDED = ("memory_bandwidth", "memory_efficiency", "flops_16bit", "compute_efficiency")


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast figure: what it is of, its unit, and between which ends it is believed to lie."""

    kind: str  # "attention", "layer", "products", "read", "arithmetic" or "power"
    name: str
    batch: int | None
    unit: str
    forecast: Estimate
    tokens: int | None = None

    @property
    def key(self) -> tuple[str, str, int | None, int | None]:
        """What it is of."""
        return self.kind, self.name, self.batch, self.tokens


@dataclass(frozen=True, slots=True)
class Compared:
    """A forecast beside what was measured."""

    forecast: Forecast
    measured: Estimate

    @property
    def error(self) -> float:
        """Relative error of the forecast."""
        return self.forecast.forecast.value / self.measured.value - 1

    @property
    def inside(self) -> bool:
        """Whether the measured value lies between the forecast's ends."""
        return self.forecast.forecast.low <= self.measured.value <= self.forecast.forecast.high


def forecasts(
    card: DeviceCard,
    shapes: Sequence[AttentionShape],
    layers: Sequence[Layer],
    batches: Sequence[int],
    itemsize: int,
    most: int,
) -> list[Forecast]:
    """Return what the card forecasts; what it lacks constants for is left out.

    Parameters
    ----------
    itemsize
        Bytes of a number.
    most
        Resident tokens of the largest whole layer.
    """
    known = card.constants
    found: list[Forecast] = []
    if all(name in known for name in _NEEDED):
        rate = Estimate.of(known["memory_bandwidth"]).times(Estimate.of(known["memory_efficiency"]))
        flops = Estimate.of(known["flops_16bit"]).times(Estimate.of(known["compute_efficiency"]))
        attending = {
            shape.name: _longer(shape.values_per_token * itemsize, shape.flops_per_token, rate, flops)
            for shape in SHAPES.values()
        }
        for shape in shapes:
            seconds = attending[shape.name]
            found.append(Forecast("attention", shape.name, None, "s/token", seconds))
        for layer in layers:
            for batch in sorted(batches):
                seconds = _longer(layer.parameters * itemsize, layer.flops(batch), rate, flops)
                found.append(Forecast("products", layer.model, batch, "s", seconds))
        for layer in layers:
            for place in whole_layers(layer, batches, most):
                of_token = attending[layer.model]
                products = _longer(layer.parameters * itemsize, layer.flops(place.batch), rate, flops)
                both = (one + place.tokens * other for one, other in zip(products.ends, of_token.ends, strict=True))
                found.append(Forecast("layer", layer.model, place.batch, "s", Estimate(*both), place.tokens))
        found.append(Forecast("read", "plain read", None, "B/s", Estimate.of(known["memory_bandwidth"])))
        found.append(Forecast("arithmetic", "square product", None, "FLOP/s", Estimate.of(known["flops_16bit"])))
    return found + _power(known)


def compare(made: Sequence[Forecast], found: Measurement) -> list[Compared]:
    """Return the forecasts of which something was measured, beside it."""
    measured = dict(_measured(found))
    return [Compared(one, measured[one.key]) for one in made if one.key in measured]


def _measured(found: Measurement) -> list[tuple[_Key, Estimate]]:
    """Return the measured figures under the names that forecasts have."""
    rows: list[tuple[_Key, Estimate]] = []
    for one in found.attention:
        if one.law is not None:
            rows.append((("attention", one.shape.name, None, None), one.law.per_token))
        if one.read is not None:
            rows.append((("read", "plain read", None, None), one.read))
    for times in found.layers:
        for batch, seconds in zip(times.batches, times.medians, strict=True):
            rows.append((("products", times.layer.model, batch, None), seconds))
        rows += [(("layer", times.layer.model, one.batch, one.tokens), one.seconds) for one in times.steps]
        square = times.square_rate()
        if square is not None:
            rows.append((("arithmetic", "square product", None, None), square))
    if found.power is not None:
        power = found.power
        rows += [
            (("power", state.name, None, None), power.medians[state.name])
            for state in power.states
            if state.name in power.medians
        ]
        most = power.most()
        if most is not None:
            rows.append((("power", "most", None, None), most))
    return rows


def _power(known: Mapping[str, Quantity]) -> list[Forecast]:
    """Return idle, waiting and peak watts."""
    if "idle_power" not in known or "peak_power" not in known:
        return []
    idle, peak = known["idle_power"], known["peak_power"]
    value, low, high = (
        floor + share * (top - floor)
        for share, floor, top in zip(
            Estimate.of(SPIN).ends,
            Estimate.of(idle).ends,
            (peak.value, max(peak.low, idle.low), peak.high),
            strict=True,
        )
    )
    waiting = Estimate(value, min(low, value), max(high, value))
    return [
        Forecast("power", "idle", None, "W", Estimate.of(idle)),
        *(Forecast("power", name, None, "W", waiting) for name, _, _ in SPINS),
        Forecast("power", "most", None, "W", Estimate.of(peak)),
    ]


def _longer(num_bytes: float, flops: float, rate: Estimate, arithmetic: Estimate) -> Estimate:
    """Return the longer of reading and computing, with ends."""
    return Estimate(*map(max, rate.rate(num_bytes).ends, arithmetic.rate(flops).ends))
