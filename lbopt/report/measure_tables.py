"""The tables of a measurement: attention's law, its verdict, the barrier, and the raw rows for a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from lbopt.hardware.measure import AttentionTimes, Measurement
from lbopt.hardware.measure.linearity import TOLERANCE
from lbopt.hardware.measure.measurement import MOST_UNREST
from lbopt.hardware.measure.timing import Estimate, Samples
from lbopt.report import numbers
from lbopt.table import Table


def measure_tables(found: Measurement) -> list[Table]:
    """Return what a terminal shows."""
    fitted = [one for one in found.attention if one.law is not None]
    tables = [_law_table(found, fitted), _verdict_table(fitted)] if fitted else []
    return tables + [_barrier_table(one) for one in fitted if one.steps]


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
        rows += _rows(one.shape.name, one.samples, [*places, {"what": "plain read"}])
    return rows


def _rows(attention: str, samples: Samples, places: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    empty = {"what": None, "batch": None, "tokens": None, "vector": None, "worker": None}
    for sample in samples.taken:
        yield {
            "attention": attention,
            **(empty | places[sample.work]),
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
            numbers.share(step.error_of_mean),
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


def _with(value: Estimate, factor: float, digits: int, unit: str = "") -> str:
    """Return a value with its interval, e.g. "12.3 (11.9 … 12.8)"."""
    middle, low, high = (_digits(factor * end, digits) for end in (value.value, value.low, value.high))
    return f"{middle} ({low} … {high}){unit}"


def _digits(value: float, digits: int) -> str:
    """Return a number with so many digits that count, but no fewer than its whole part has."""
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")
