"""What was measured of a device: its tables, its picture and its folder.

The tables of a measurement: attention's law, its verdict, the barrier, products, power, and raw rows for files.

The output folder of a measurement: card.toml, samples.csv, power.csv, forecast.csv, the picture, run.json.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lbopt import numbers
from lbopt.hardware.cards.catalogue import DeviceCard
from lbopt.hardware.measure import AttentionTimes, Measurement
from lbopt.hardware.measure.attention import MOST_UNREST
from lbopt.hardware.measure.card import Compared, Forecast
from lbopt.hardware.measure.power import PowerTimes
from lbopt.hardware.measure.products import LayerTimes
from lbopt.hardware.measure.timing import TOLERANCE, Estimate, Samples
from lbopt.report.contents import Contents, write_folder
from lbopt.report.figures import COLOURS, new_figure
from lbopt.table import Table

_UNITS = {
    "s/token": (1e9, "ns/token"),
    "s": (1e3, "ms"),
    "B/s": (1e-9, "GB/s"),
    "FLOP/s": (1e-12, "TFLOP/s"),
    "W": (1.0, "W"),
}
_FORECAST_NOTE = (
    "One layer; attention by the resident token, products by requests, in brackets the ends that the card's ends give. "
    "The forecast knows the card alone."
)


def measure_tables(found: Measurement) -> list[Table]:
    """Return what a terminal shows."""
    fitted = [one for one in found.attention if one.law is not None]
    tables = [_law_table(found, fitted), _verdict_table(fitted)] if fitted else []
    tables += [_barrier_table(one) for one in fitted if one.steps]
    tables += [_shared_table(one) for one in fitted if one.shared]
    tables += [_layer_table(one) for one in found.layers if one.batches]
    if found.power is not None and found.power.medians:
        tables.append(_power_table(found.power))
    return tables


def forecast_table(card: DeviceCard, made: Sequence[Forecast]) -> Table:
    """Return what a card forecasts, before anything is measured."""
    rows = [(*_of_what(one), _scaled(one.forecast, one.unit)) for one in made]
    return Table(f"Forecast by card {card.name}", _FORECAST_NOTE, ("figure", "requests", "forecast"), rows)


def compared_table(card: DeviceCard, compared: Sequence[Compared]) -> Table:
    """Return each forecast beside what was measured."""
    rows = [
        (
            *_of_what(one.forecast),
            _scaled(one.forecast.forecast, one.forecast.unit),
            _scaled(one.measured, one.forecast.unit),
            numbers.share(one.error),
            "inside" if one.inside else "outside",
        )
        for one in compared
    ]
    inside = sum(one.inside for one in compared)
    errors = sorted(abs(one.error) for one in compared)
    note = f"{inside} of {len(compared)} measured figures lie between the ends of their forecast; "
    note += f"median error {numbers.share(errors[len(errors) // 2])}. " if errors else ""
    headers = ("figure", "requests", "forecast", "measured", "error of the forecast", "")
    return Table(f"Card {card.name} against this device", note + _FORECAST_NOTE, headers, rows)


def forecast_csv(compared: Sequence[Compared]) -> list[dict[str, Any]]:
    """Return a row per forecast with what was measured, in SI units."""
    return [
        {
            "kind": one.forecast.kind,
            "name": one.forecast.name,
            "requests": one.forecast.batch,
            "tokens": one.forecast.tokens,
            "unit": one.forecast.unit,
            "forecast": one.forecast.forecast.value,
            "forecast_low": one.forecast.forecast.low,
            "forecast_high": one.forecast.forecast.high,
            "measured": one.measured.value,
            "measured_low": one.measured.low,
            "measured_high": one.measured.high,
        }
        for one in compared
    ]


def power_csv(power: PowerTimes) -> list[dict[str, Any]]:
    """Return a row per window: state, kind, round, watts."""
    return [
        {"state": state.name, "kind": state.kind, "round": number, "watts": watts}
        for state in power.states
        for number, watts in enumerate(power.watts.get(state.name, []))
    ]


def measure_csv(found: Measurement) -> list[dict[str, Any]]:
    """Return a row per sample, with full precision, in the order of time; those of the barrier name their vector."""
    rows: list[dict[str, Any]] = []
    for one in found.attention:
        places: list[dict[str, Any]] = [
            {"what": "grid", "batch": point.batch, "tokens": point.tokens} for point in one.grid
        ]
        places += [
            {"what": "barrier", "batch": one.barrier_batch, "tokens": load, "vector": vector.name, "worker": worker}
            for vector in one.vectors
            for worker, load in enumerate(vector.loads)
        ]
        places += [{"what": "plain read"}] if found.config.read else []
        places += [{"what": "one device", "batch": one.barrier_batch, "vector": vector.name} for vector in one.vectors]
        rows += _rows({"attention": one.shape.name}, one.samples, places)
    for times in found.layers:
        whole = [{"what": "whole layer", "batch": one.batch, "tokens": one.tokens} for one in times.places]
        layer: list[dict[str, Any]] = [{"what": "products", "batch": batch} for batch in times.grid]
        rows += _rows({"layer": times.layer.model}, times.samples, [*layer, {"what": "square product"}, *whole])
    return rows


def _rows(whose: dict[str, str], samples: Samples, places: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    empty = {"attention": None, "layer": None, "what": None, "batch": None, "tokens": None}
    empty |= {"vector": None, "worker": None}
    for sample in samples.taken:
        yield {
            **(empty | whose | places[sample.work]),
            "round": sample.round,
            "elapsed_seconds": sample.elapsed,
            "calls": sample.calls,
            "seconds_per_call": sample.seconds,
        }


def _law_table(found: Measurement, fitted: list[AttentionTimes]) -> Table:
    rows = []
    for one in fitted:
        law, rate = one.law, one.bandwidth()
        if law is None:
            continue
        batches = sorted(law.calls)
        rows.append(
            (
                one.shape.name,
                f"{one.bytes_per_token:,}",
                _with(law.per_token, 1e9, 4),
                _with(rate, 1e-9, 3) if rate else numbers.UNKNOWN,
                _with(one.read, 1e-9, 3) if one.read else numbers.UNKNOWN,
                "; ".join(f"{batch}: {_with(law.calls[batch], 1e6, 3)}" for batch in batches),
                numbers.share(float(abs(law.residuals).max())),
            )
        )
    return Table(
        f"Attention in decode, one layer: {found.backend} on {found.device}, {found.dtype}",
        "Time of a call = fixed part by batch size + time per resident token; 95 % intervals of the fit. "
        f"KV is read from memory, not from cache. Measured in {found.seconds:.0f} s.",
        (
            "attention",
            "B / token",
            "ns / token",
            "GB/s of KV",
            "GB/s, plain read",
            "fixed part (µs)",
            "largest residual",
        ),
        rows,
    )


def _verdict_table(fitted: list[AttentionTimes]) -> Table:
    rows = []
    for one in fitted:
        found, drift = one.linearity, one.samples.drift()
        if found is None:
            continue
        rows.append(
            (
                one.shape.name,
                found.verdict,
                numbers.share(found.departure),
                numbers.share(found.departure_high),
                f"{found.exponent:.2f}",
                f"{numbers.share(found.left_out_error)}; {numbers.share(found.quadratic_error)}; "
                f"{numbers.share(found.power_error)}",
                _with(drift, 100, 2, " %") if drift else numbers.UNKNOWN,
                numbers.share(one.samples.unrest()),
            )
        )
    return Table(
        "Is it linear in resident tokens?",
        f"Linear: no departure from a line beyond {TOLERANCE:.0%} is left possible. Not linear: a curve predicts "
        "left-out places better, significantly, and departs by more than that. Left-out errors are of the line; with "
        "N²; with N^exponent. Drift is over the whole run, spread over all places by their random order; unrest is how "
        f"much the pace varied between rounds, and beyond {MOST_UNREST:.0%} no bend is believed.",
        ("attention", "verdict", "departure", "at most", "exponent", "left-out errors", "drift", "unrest"),
        rows,
    )


def _barrier_table(one: AttentionTimes) -> Table:
    rows = [
        (
            step.vector.name,
            numbers.tokens(max(step.vector.loads)),
            numbers.tokens(sum(step.vector.loads) / len(step.vector.loads)),
            _with(step.measured, 1e3, 4),
            _digits(1e3 * step.by_max, 4),
            numbers.share(step.error_of_max),
            numbers.share(step.error_of_other),
            numbers.share(step.noise),
        )
        for step in one.steps
    ]
    return Table(
        f"A barrier of {len(one.vectors[0].loads)} workers: {one.shape.name}, {one.barrier_batch} requests each",
        "Workers run one after another, in the same rounds as the grid; a step is the longest of a round, with its "
        "bootstrap interval. Predicted by the law of the first table, by the heaviest and by the mean load; the last "
        "column is how far the median step lies above the largest of the workers' medians.",
        ("loads", "max L", "mean L", "step (ms)", "by max (ms)", "error by max", "error by mean", "noise of the max"),
        rows,
    )


def _shared_table(one: AttentionTimes) -> Table:
    rows = [
        (
            step.vector.name,
            numbers.tokens(max(step.vector.loads)),
            numbers.tokens(sum(step.vector.loads)),
            _with(step.measured, 1e3, 4),
            numbers.share(step.error_of_other),
            numbers.share(step.error_of_max),
        )
        for step in one.shared
    ]
    return Table(
        f"The same workers at once on one device: {one.shape.name}",
        "Each worker in a stream of its own. Where errors by total are small, the device is full and only the total "
        "counts: workers that share a device have no barrier to balance.",
        ("loads", "max L", "total L", "step (ms)", "error by total", "error by max"),
        rows,
    )


def _layer_table(one: LayerTimes) -> Table:
    rows = [
        (
            str(batch),
            _with(seconds, 1e3, 4),
            _with(one.bandwidth(place), 1e-9, 3),
            _with(one.flops_rate(place), 1e-12, 3),
        )
        for place, (batch, seconds) in enumerate(zip(one.batches, one.medians, strict=True))
    ]
    left = (
        f" {one.layer.left_out / 1e9:.1f} billion parameters of routed experts are left out."
        if one.layer.left_out
        else ""
    )
    square = one.square_rate()
    best = f" A square product of {one.edge:,} reaches {_with(square, 1e-12, 3)} TFLOP/s." if square else ""
    return Table(
        f"Products of one layer of {one.layer.model}: {one.num_bytes / 1e9:.2f} GB of weights",
        f"Projections, feed-forward part and experts, by running requests; weights from memory.{left}{best}",
        ("requests", "seconds (ms)", "GB/s of weights", "TFLOP/s"),
        rows,
    )


def _power_table(power: PowerTimes) -> Table:
    rows = []
    for state in power.states:
        if state.name not in power.medians:
            continue
        share = power.share(state.name) if state.kind == "waiting" else None
        seen = power.watts[state.name]
        rows.append(
            (
                state.name,
                state.kind,
                f"{power.medians[state.name].value:,.0f} ({min(seen):,.0f} … {max(seen):,.0f})",
                numbers.UNKNOWN if share is None else numbers.share(share),
            )
        )
    return Table(
        "Power of the board by what it does",
        "Median of the windows, with the least and the most. The last column is the share of the way from idle to "
        "busy, busy being the mean of attentions and products.",
        ("state", "kind", "W", "share of the way"),
        rows,
    )


def _of_what(one: Forecast) -> tuple[str, str]:
    name = one.name if one.kind in one.name else f"{one.kind}: {one.name}"
    where = "" if one.tokens is None else f", {numbers.tokens(one.tokens)} tokens"
    return name + where, "" if one.batch is None else str(one.batch)


def _scaled(value: Estimate, unit: str) -> str:
    """Return a figure in the unit that people use for it."""
    factor, shown = _UNITS[unit]
    return _with(value, factor, 3, f" {shown}")


def _with(value: Estimate, factor: float, digits: int, unit: str = "") -> str:
    """Return a value with its interval, e.g. "12.3 (11.9 … 12.8)"."""
    middle, low, high = (_digits(factor * end, digits) for end in (value.value, value.low, value.high))
    return f"{middle} ({low} … {high}){unit}"


def _digits(value: float, digits: int) -> str:
    """Return a number with so many digits that count, but no fewer than its whole part has."""
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")


_MARKS = "osD^v<>P*X"


def measure_figure(found: Measurement) -> Figure:
    """Return a row per attention: left its grid with the fitted law, right the barrier where it was measured."""
    shown = [one for one in found.attention if one.law is not None]
    columns = 2 if any(one.steps for one in shown) else 1
    figure, first = new_figure(0.8 + 4.6 * columns, 0.6 + 3.4 * max(1, len(shown)))
    grid = figure.add_gridspec(max(1, len(shown)), columns)
    first.remove()
    for row, one in enumerate(shown):
        _times(figure.add_subplot(grid[row, 0]), one)
        if one.steps:
            _barrier(figure.add_subplot(grid[row, 1]), one)
    return figure


def _times(axes: Axes, one: AttentionTimes) -> None:
    """Draw medians with intervals and the law, a colour per batch size."""
    _dress(axes)
    for index, batch in enumerate(sorted({point.batch for point in one.points})):
        colour = COLOURS[index % len(COLOURS)]
        places = [
            (point.tokens, time) for point, time in zip(one.points, one.medians, strict=True) if point.batch == batch
        ]
        tokens = np.array([place for place, _ in places])
        middle = np.array([1e3 * time.value for _, time in places])
        low, high = (np.array([1e3 * getattr(time, end) for _, time in places]) for end in ("low", "high"))
        axes.errorbar(
            tokens,
            middle,
            yerr=[middle - low, high - middle],
            color=colour,
            marker=_MARKS[index % len(_MARKS)],
            markersize=4,
            linestyle="",
            label=f"batch {batch}",
        )
        if one.law is not None:
            line = np.geomspace(tokens.min(), tokens.max(), 200)
            law = np.array([1e3 * one.law.seconds(batch, float(place)) for place in line])
            axes.plot(line[law > 0], law[law > 0], color=colour, linewidth=1)
    axes.set_xlabel("resident tokens of the call")
    axes.set_ylabel("time of one layer's attention (ms)")
    verdict = one.linearity.verdict if one.linearity else "no verdict"
    axes.set_title(f"{one.shape.name}: {verdict}", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)


def _barrier(axes: Axes, one: AttentionTimes) -> None:
    """Draw predicted against measured steps: by the heaviest load and by the mean."""
    measured = [1e3 * step.measured.value for step in one.steps]
    by_max = [1e3 * step.by_max for step in one.steps]
    end = 1.15 * max(measured + by_max)
    axes.plot([0, end], [0, end], color="#57606a", linewidth=1, label="as measured")
    axes.plot(measured, by_max, "o", color=COLOURS[0], label="by max L")
    axes.plot(
        measured,
        [1e3 * step.by_other for step in one.steps],
        "s",
        color=COLOURS[1],
        fillstyle="none",
        label="by mean L",
    )
    for index, step in enumerate(one.steps):
        axes.annotate(
            step.vector.name,
            (measured[index], by_max[index]),
            xytext=(-7, 1),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("measured step (ms)")
    axes.set_ylabel("predicted step (ms)")
    axes.set_title(f"barrier of {len(one.vectors[0].loads)} workers", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def _dress(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


FORMAT = "lbopt-measure"
FORMAT_VERSION = 1


def write_measure_folder(
    found: Measurement, card: str | None, folder: Path, command: str, compared: Sequence[Compared] = ()
) -> None:
    """Write the folder whole or not at all; `card` is the card's text, None where none could be made.

    Parameters
    ----------
    card
        Text of the card; None where none could be made.
    """
    fitted = any(one.law is not None for one in found.attention)
    contents = Contents(
        tables={
            "samples": measure_csv(found),
            **({} if found.power is None else {"power": power_csv(found.power)}),
            **({"forecast": forecast_csv(compared)} if compared else {}),
        },
        figures={"measure": measure_figure(found) if fitted else None},
        others={} if card is None else {"card.toml": card},
    )
    account = {
        "machine": found.machine,
        "date": found.date,
        "configuration": found.config.to_dict(),
        "interrupted": found.interrupted,
        "notes": found.notes,
        "seconds": found.seconds,
    }
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: contents, account)
