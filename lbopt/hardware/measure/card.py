"""A measured card, and what another card forecasts of the measurement.

From a measurement to a device card that says of itself how it came about.

The memory rates are those of the attention whose KV was read fastest, of those whose time is a straight line. Where
none is, they are those of the one nearest to a line (least left-out error): a slope that is fitted to a bend is
no rate. What a roofline uses is the product of `memory_bandwidth` and `memory_efficiency`, which is the rate that
attention reached: with a plain read measured, that read is the bandwidth and the ratio is the efficiency; without one,
the bandwidth is what attention reached and the efficiency is one by definition. The ratio may exceed one: a kernel of
attention can read faster than the sum of a block. `step_overhead` needs a serving engine and is left out.

The rate of arithmetic is that of a large square product; its share is what a layer's products reach at their largest
batch, over the layers that arithmetic binds there (reading their weights alone takes less than half of the time).

What a card forecasts of a measurement, made from documents alone and before the measurement.

The forecasts are those of the roofline (`lbopt/hardware/step_time/roofline.py`), for one layer: attention by the
resident token and products by the batch take the longer of bytes over ``bandwidth x efficiency`` and arithmetic over
``rate x efficiency``; power is the card's idle and peak, and a waiting device draws the share of the way that a price
takes (`lbopt/hardware/price.py`). The ends are those that the card's ends give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import CONSTANTS, DeviceCard
from lbopt.hardware.measure.attention import SHAPES, AttentionShape, AttentionTimes
from lbopt.hardware.measure.measurement import Measurement
from lbopt.hardware.measure.power import SPINS, PowerTimes
from lbopt.hardware.measure.products import Layer, LayerTimes, whole_layers
from lbopt.hardware.measure.timing import Estimate, Samples
from lbopt.hardware.price import SPIN
from lbopt.hardware.quantity import Basis, Quantity

#: Digits of numbers in the account; the raw rows have them all.
_DIGITS = 4


def make_card(found: Measurement, name: str | None = None) -> DeviceCard:
    """Return the card; an error where no slope could be distinguished from zero."""
    straight = [one for one in found.attention if one.law is not None and one.bandwidth() is not None]
    if not straight:
        raise InputError(
            "no card is written: the time per token cannot be distinguished from zero; give a larger --most or --budget"
        )
    times = _straightest(straight)
    title = found.machine.get("device") or found.machine.get("processor") or found.device
    if found.device == "cpu":
        title = f"{title}, {found.machine.get('threads', '?')} of {found.machine.get('cores', '?')} cores"
    return DeviceCard(
        name=name or slug(title),
        title=f"{title} ({found.backend}, {found.dtype})",
        part="board" if found.device != "cpu" else "package",
        origin="measurement",
        constants=_constants(found, times),
        account=_account(found),
        note=f"Memory rates and call are those of attention {times.shape.name}, the fastest of those that are linear "
        "or the one nearest to a line; what another kernel reaches differs.",
    )


def card_text(card: DeviceCard) -> str:
    """Return the card as TOML, which `DeviceCard.from_dict` reads back."""
    import tomli_w

    return tomli_w.dumps(card.to_dict())


def slug(title: str) -> str:
    """Return a title as a name that is easy to type."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "device"


def _straightest(measured: list[AttentionTimes]) -> AttentionTimes:
    """Return the fastest of those that are linear, or the one nearest to a line."""
    linear = [one for one in measured if one.linearity is not None and one.linearity.verdict == "linear"]
    if linear:
        return max(linear, key=lambda one: rate.value if (rate := one.bandwidth()) else 0.0)
    return min(measured, key=lambda one: one.law.left_out_error if one.law else 0.0)


def _constants(found: Measurement, times: AttentionTimes) -> dict[str, Quantity]:
    rate, law = times.bandwidth(), times.law
    if rate is None or law is None:
        raise InputError(f"attention {times.shape.name} has no slope")
    way = f"measured {found.date}, attention {times.shape.name}, {found.backend} {found.dtype}"
    slope = f"{way}; {times.bytes_per_token} B per token over the slope, 95 % interval of the fit"
    by_definition = "1 by definition: memory_bandwidth is what attention reached, no plain read was measured"
    bandwidth, whence = rate, slope
    efficiency = _quantity("memory_efficiency", Estimate(1.0, 1.0, 1.0), by_definition, "derived")
    if (read := times.read) is not None:
        bandwidth = read
        whence = f"measured {found.date}, plain read of a large block in the same rounds, {found.backend}"
        ratio = Estimate(rate.value / read.value, rate.low / read.high, rate.high / read.low)
        efficiency = _quantity("memory_efficiency", ratio, f"{slope}; over the plain read's rate")
    least, most = law.calls[min(law.calls)], law.calls[max(law.calls)]
    call = Estimate(max(0.0, least.value), max(0.0, least.low), max(0.0, least.high, most.high))
    batches = " and ".join(str(batch) for batch in dict.fromkeys((min(law.calls), max(law.calls))))
    fixed = f"{way}; fixed part of the fit at batch {batches}, nothing below zero"
    constants = {
        "memory_bandwidth": _quantity("memory_bandwidth", bandwidth, whence),
        "memory_efficiency": efficiency,
        "attention_call": _quantity("attention_call", call, fixed),
    }
    return constants | _of_products(found) | _of_power(found)


def _quantity(name: str, value: Estimate, source: str, basis: Basis = "measured") -> Quantity:
    """Return a card's constant by its name."""
    return Quantity(*value.ends, CONSTANTS[name][0], source, basis)


def _of_products(found: Measurement) -> dict[str, Quantity]:
    """Return the rate of matrix arithmetic, and the share of it that a layer reaches at its largest batch."""
    square = next((rate for one in found.layers if (rate := one.square_rate()) is not None), None)
    if square is None or found.dtype == "float32":  # no card has a constant for that rate
        return {}
    one = found.layers[0]
    constants = {
        "flops_16bit": _quantity(
            "flops_16bit",
            square,
            f"measured {found.date}, product of two {found.dtype} matrices of {one.edge:,} x {one.edge:,}, "
            f"{found.backend}",
        )
    }
    reached = {
        times.layer.model: times.flops_rate(-1)
        for times in found.layers
        if times.batches and 2 * min(one.value for one in times.medians) < times.medians[-1].value
    }
    if reached:
        best = max(reached, key=lambda name: reached[name].value)
        rate = reached[best]
        least = min(one.value for one in reached.values())
        shares = (rate.value / square.value, least / square.value, rate.high / square.low)
        constants["compute_efficiency"] = _quantity(
            "compute_efficiency",
            Estimate(*(min(1.0, share) for share in shares)),
            f"measured {found.date}, products of a layer of {best} at {found.layers[0].grid[-1]:,} requests over that "
            "rate; low: the layer that reached least",
        )
    return constants


def _of_power(found: Measurement) -> dict[str, Quantity]:
    """Return idle watts, and those of the mean busy state with the hungriest as the high end."""
    power = found.power
    if power is None or "idle" not in power.medians:
        return {}
    idle, busy, most = power.medians["idle"], power.middle("busy"), power.most()
    way = f"measured {found.date}, the driver's energy counter over windows of {found.config.power_seconds:g} s"
    constants = {"idle_power": _quantity("idle_power", idle, f"{way}; nothing runs, a process holds the device")}
    seen = [
        power.medians[state.name].low for state in power.states if state.kind == "busy" and state.name in power.medians
    ]
    if busy is not None and most is not None and idle.value <= busy:
        constants["peak_power"] = _quantity(
            "peak_power",
            Estimate(busy, min(seen), max(busy, most.high)),
            f"{way}; value: mean of the attentions and products of a decode step; low: the least of them; high: the "
            "hungriest state",
        )
    return constants


def _account(found: Measurement) -> dict[str, Any]:
    """Return machine, date, method, sizes and results as what TOML can hold."""
    config = found.config
    return {
        "date": found.date,
        "machine": dict(found.machine),
        "backend": found.backend,
        "device": found.device,
        "dtype": found.dtype,
        "method": "one layer of decode attention, one query token a request, KV read from memory and not from cache; "
        "rounds in random order; medians; least squares of relative errors; 95 % intervals",
        "batches": list(config.batches),
        "budget_seconds": config.budget,
        "target_relative_half_width": config.target,
        "seed": config.seed,
        "seconds": _short(found.seconds),
        "interrupted": found.interrupted,
        "attention": {one.shape.name: _of(one) for one in found.attention if one.law is not None},
        **({"products": {one.layer.model: _of_layer(one) for one in found.layers}} if found.layers else {}),
        **({"power": _of_states(found.power)} if found.power is not None and found.power.medians else {}),
    }


def _of_layer(times: LayerTimes) -> dict[str, Any]:
    square = times.square_rate()
    data: dict[str, Any] = {
        "products": [f"{one.copies} x {one.inputs} x {one.outputs}, {one.name}" for one in times.layer.products],
        "bytes": times.num_bytes,
        "parameters_left_out": times.layer.left_out,
        "repetitions": _repetitions(times.samples),
        "requests": times.batches,
        "seconds": [_short(one.value) for one in times.medians],
        "bytes_per_second": [_short(times.bandwidth(place).value) for place in range(len(times.batches))],
        "flops_per_second": [_short(times.flops_rate(place).value) for place in range(len(times.batches))],
        "unrest": _short(times.samples.unrest()),
    }
    if times.steps:
        data["whole_layers"] = [
            {"requests": one.batch, "tokens": one.tokens, "seconds": _ends(one.seconds)} for one in times.steps
        ]
    return data if square is None else data | {"square_flops_per_second": _ends(square)}


def _of_states(power: PowerTimes) -> dict[str, Any]:
    """Return watts by state, and of the waiting states their share of the way from idle to busy."""
    shares = {state.name: power.share(state.name) for state in power.states if state.kind == "waiting"}
    return {
        "watts": {name: _ends(watts) for name, watts in power.medians.items()},
        "rounds": {name: [_short(one) for one in seen] for name, seen in power.watts.items()},
        "waiting_share": {name: _short(share) for name, share in shares.items() if share is not None},
    }


def _of(times: AttentionTimes) -> dict[str, Any]:
    law, linearity, rate = times.law, times.linearity, times.bandwidth()
    data: dict[str, Any] = {
        "shape": times.shape.title,
        "bytes_per_token": times.bytes_per_token,
        "flops_per_token": times.shape.flops_per_token,
        "repetitions": _repetitions(times.samples),
        "batch": [point.batch for point in times.points],
        "tokens": [point.tokens for point in times.points],
        "seconds": [_short(one.value) for one in times.medians],
    }
    if law is not None:
        data |= {
            "seconds_per_token": _ends(law.per_token),
            "seconds_per_byte": _ends(
                Estimate(
                    *(
                        end / times.bytes_per_token
                        for end in (law.per_token.value, law.per_token.low, law.per_token.high)
                    )
                )
            ),
            "fixed_seconds_by_batch": {str(batch): _ends(call) for batch, call in law.calls.items()},
            "relative_residuals": [_short(float(one)) for one in law.residuals],
        }
    if rate is not None:
        data["bytes_per_second"] = _ends(rate)
    if linearity is not None:
        data["linearity"] = {
            "verdict": linearity.verdict,
            "departure": _short(linearity.departure),
            "departure_at_most": _short(linearity.departure_high),
            "p_value": _short(linearity.p_value),
            "exponent": _short(linearity.exponent),
            "left_out_error_linear": _short(linearity.left_out_error),
            "left_out_error_quadratic": _short(linearity.quadratic_error),
            "left_out_error_power": _short(linearity.power_error),
        }
    if times.read is not None:
        data["plain_read_bytes_per_second"] = _ends(times.read)
    data["unrest"] = _short(times.samples.unrest())
    drift = times.samples.drift()
    if drift is not None:
        data["drift"] = _ends(drift)
    if times.shared:
        data["one_device"] = {
            step.vector.name: {
                "seconds": _ends(step.measured),
                "error_of_total": _short(step.error_of_other),
                "error_of_max": _short(step.error_of_max),
            }
            for step in times.shared
        }
    if times.steps:
        data["barrier"] = {
            "workers": len(times.vectors[0].loads),
            "batch": times.barrier_batch,
            "rounds": len(times.samples.whole_rounds()),
            "steps": {
                step.vector.name: {
                    "loads": list(step.vector.loads),
                    "seconds": _ends(step.measured),
                    "error_of_max": _short(step.error_of_max),
                    "error_of_mean": _short(step.error_of_other),
                    "above_largest_median": _short(step.noise),
                }
                for step in times.steps
            },
        }
    return data


def _repetitions(samples: Samples) -> int:
    """Return the least number of samples of a place that has any."""
    counts = [len(samples.of(work)) for work in range(samples.num_works)]
    return min((count for count in counts if count), default=0)


def _ends(value: Estimate) -> list[float]:
    """Return value, low and high."""
    return [_short(end) for end in value.ends]


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


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
