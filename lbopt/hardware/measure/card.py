"""From a measurement to a device card that says of itself how it came about.

The memory rates are those of the attention whose KV was read fastest, of those whose time is a straight line. Where
none is, they are those of the one nearest to a line (least left-out error): a slope that is fitted to a bend is
no rate. What a roofline uses is the product of `memory_bandwidth` and `memory_efficiency`, which is the rate that
attention reached: with a plain read measured, that read is the bandwidth and the ratio is the efficiency; without one,
the bandwidth is what attention reached and the efficiency is one by definition. The ratio may exceed one: a kernel of
attention can read faster than the sum of a block. `step_overhead` needs a serving engine and is left out.

The rate of arithmetic is that of a large square product; its share is what a layer's products reach at their largest
batch, over the layers that arithmetic binds there (reading their weights alone takes less than half of the time).
"""

from __future__ import annotations

import re
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.cards.device import CONSTANTS, DeviceCard
from lbopt.hardware.measure.attention import AttentionTimes
from lbopt.hardware.measure.measurement import Measurement
from lbopt.hardware.measure.power import PowerTimes
from lbopt.hardware.measure.products import LayerTimes
from lbopt.hardware.measure.timing import Estimate, Samples
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
