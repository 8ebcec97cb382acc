"""Runs of the load generator as a table, one column a run, so that two rules stand side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lbopt.serving.load.result import LARGEST_LAG, Figure, Floats, LoadResult, percentile
from lbopt.table import Table


def load_table(runs: Mapping[str, LoadResult]) -> Table:
    """Return the figures of runs by the names of their columns."""
    rows: list[tuple[str, Callable[[LoadResult], str]]] = [
        ("requests served", lambda run: f"{len(run.served):,} of {len(run.outcomes):,} sent"),
        ("errors", _errors),
        ("tokens a second", lambda run: _rate(run.tokens_per_second)),
        ("of the whole run", lambda run: _number(run.whole_run_tokens_per_second)),
        ("TTFT P50 (ms)", lambda run: _milliseconds(run.ttft, 50)),
        ("TTFT P95 (ms)", lambda run: _milliseconds(run.ttft, 95)),
        ("TTFT P99 (ms)", lambda run: _milliseconds(run.ttft, 99)),
        ("TPOT P50 (ms)", lambda run: _milliseconds(run.tpot, 50)),
        ("TPOT P95 (ms)", lambda run: _milliseconds(run.tpot, 95)),
        ("TPOT P99 (ms)", lambda run: _milliseconds(run.tpot, 99)),
        ("E2E P50 (ms)", lambda run: _milliseconds(run.e2e, 50)),
        ("E2E P99 (ms)", lambda run: _milliseconds(run.e2e, 99)),
        ("lag of the generator, P99 (ms)", lambda run: _lag(run.lag)),
        ("seconds", lambda run: f"{run.seconds:,.1f}"),
    ]
    first = next(iter(runs.values()))
    late = [name for name, run in runs.items() if not run.comparable]
    caption = "latency counts from the time at which a request was to be sent; in brackets 95 % intervals by batches"
    if late:
        caption += f"; not to be compared: the generator was late by more than {LARGEST_LAG * 1000:g} ms at P99" + (
            f" under {', '.join(late)}" if len(runs) > 1 else ""
        )
    return Table(
        title=f"{first.trace}: {first.planned:,} requests",
        caption=caption,
        headers=("", *runs),
        rows=[(label, *(show(run) for run in runs.values())) for label, show in rows],
    )


def _errors(run: LoadResult) -> str:
    kinds = [f"{count:,} {kind}" for kind, count in run.errors.items()]
    if run.unfinished:
        kinds.append(f"{run.unfinished:,} not waited for")
    return ", ".join(kinds) or "0"


def _milliseconds(values: Floats, level: int) -> str:
    if not values.size:
        return "-"
    figure = percentile(values, level)
    text = f"{figure.value * 1000:,.1f}"
    if figure.interval is not None:
        text += f" [{figure.interval[0] * 1000:,.1f}, {figure.interval[1] * 1000:,.1f}]"
    return text


def _rate(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    text = f"{figure.value:,.1f}"
    if figure.interval is not None:
        text += f" [{figure.interval[0]:,.1f}, {figure.interval[1]:,.1f}]"
    return text


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _lag(values: Floats) -> str:
    return f"{np.percentile(values, 99) * 1000:,.2f}" if values.size else "-"
