"""How an audit of ranks is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.numbers import fixed, three, whole
from lbopt.report.contents import Made
from lbopt.report.figures import GREY, legend_below, line_style, new_figure, of_counts, unit_of_axis
from lbopt.report.page import Picture, files_of, render_page
from lbopt.report.study_report import StudyReport
from lbopt.studies.audit.ranks import RanksOutcome
from lbopt.table import Column, Table, table_of

_percent = fixed(1, 100, " %")
_MOST_LINES, _MOST_POINTS = 16, 400
_UNITS = {"tokens": "load (tokens)", "requests": "running requests", "share of the KV cache": "KV cache in use (%)"}


def _load(outcome: RanksOutcome, row: dict[str, Any]) -> str:
    return _percent(row["load"]) if outcome.loads.unit.startswith("share") else whole(row["load"])


def _of(name: str, shown: Any) -> Any:
    return lambda _outcome, row: shown(row[name])


_RANKS = (
    Column("rank", of=_of("rank", str)),
    Column("load", header="load, mean", of=_load),
    Column("heaviest_share", header="heaviest in", of=_of("heaviest_share", _percent)),
    Column("kv_share", header="KV cache", of=_of("kv_share", _percent)),
    Column("running", of=_of("running", fixed(1))),
    Column("waiting", of=_of("waiting", fixed(1))),
    Column("tokens_per_second", header="tokens / s", of=_of("tokens_per_second", fixed(1))),
    Column("pace", header="tokens / s and request", of=_of("pace", fixed(1))),
    Column("prefill_share", header="of the prefill", of=_of("prefill_share", _percent)),
    Column("silent_share", header="silent", of=_of("silent_share", _percent)),
)


def ranks_tables(outcome: RanksOutcome) -> list[Table]:
    """Return the tables: the wait by law, the ranks, and how the log was read."""
    tables = [_wait(outcome)] if outcome.shares else []
    count = outcome.idle.moments
    caption = f"{f'Means over {count:,} moments' if count > 1 else 'One moment'}. Load: {outcome.loads.how}."
    return [*tables, table_of("The ranks", caption, _RANKS, outcome, outcome.ranks()), _read(outcome)]


def _wait(outcome: RanksOutcome) -> Table:
    rows = [(one.law, _between(_percent, one.low, one.high)) for one in outcome.shares]
    rows[0] = (f"{rows[0][0]}: the most", rows[0][1])
    money = outcome.money
    if money is not None:
        most = "at most " * (len(outcome.shares) == 1)
        currency = "USD" if outcome.config.price is None else outcome.config.currency
        worth = f"{most}{_between(whole, money.low, money.high)} {currency}"
        rows.append((f"{money.gpus} GPUs a month", worth))
    idle = outcome.idle
    spread = _percent(idle.low) != _percent(idle.high)
    return Table(
        title="What would wait at a barrier" if outcome.barrier.verdict == "no" else "What waits at the barrier",
        caption=(
            "Share of the time of decoding, by law of step time"
            + (f"; by tokens {_percent(idle.low)} to {_percent(idle.high)} in 90 % of the moments" if spread else "")
            + ". "
            + (f"Money: share · GPUs · 730 hours · {money.of}." if money is not None else "")
        ),
        headers=("law", "waits"),
        rows=rows,
    )


def _between(form: Any, low: float, high: float) -> str:
    return form(low) if form(low) == form(high) else f"{form(low)} to {form(high)}"


def _read(outcome: RanksOutcome) -> Table:
    series = outcome.series
    rows = [(kind, f"{count:,}") for kind, count in series.formats.items()]
    rows += [("lines that were not used", f"{series.unused:,}")] if series.unused else []
    length = float(series.seconds[-1]) if series.clocked else float("nan")
    rows += [
        ("moments", f"{len(series.seconds):,}"),
        ("time in the log", "–" if np.isnan(length) else f"{whole(length)} s"),
        ("usual time between moments", "–" if np.isnan(series.period) else f"{three(series.period)} s"),
    ]
    return Table(
        title="How the log was read",
        caption=(
            "A moment ends when a rank speaks again; a rank that did not speak has its last value for one and a half "
            "of its own periods."
        ),
        headers=("what", "count"),
        rows=rows,
    )


def draw_loads(outcome: RanksOutcome, axes: Axes) -> None:
    """Draw the load of each rank over time; of many ranks the heaviest, the lightest and the mean."""
    series, loads = outcome.series, outcome.loads.loads * (100 if outcome.loads.unit.startswith("share") else 1)
    unit, factor = unit_of_axis(float(series.seconds[-1]))
    known = ~np.isnan(loads).all(axis=1)
    when, loads = series.seconds[known] / factor, loads[known]
    heaviest, lightest, mean = np.nanmax(loads, axis=1), np.nanmin(loads, axis=1), np.nanmean(loads, axis=1)
    if when.size > _MOST_POINTS:  # of a long log, means of equally many moments
        parts = np.linspace(0, when.size, _MOST_POINTS + 1).astype(int)[:-1]
        counts = np.diff([*parts, when.size])
        when, heaviest, lightest, mean = (
            np.add.reduceat(one, parts) / counts for one in (when, heaviest, lightest, mean)
        )
        loads = np.add.reduceat(np.nan_to_num(loads), parts) / counts[:, None]
    mark = "o" if when.size < 30 else None
    axes.fill_between(when, mean, heaviest, color=GREY, alpha=0.15, label="waits at the barrier", linewidth=0)
    if len(series.ranks) <= _MOST_LINES:
        for g, name in enumerate(series.ranks):
            axes.plot(
                when, loads[:, g], marker=mark, markersize=3, linewidth=1.3, label=f"rank {name}", **line_style(g)
            )
    else:
        for k, (name, values) in enumerate((("heaviest", heaviest), ("lightest", lightest))):
            axes.plot(
                when, values, marker=mark, markersize=3, label=f"{name} of {len(series.ranks)} ranks", **line_style(k)
            )
    axes.plot(when, mean, color=GREY, linestyle="--", linewidth=1, label="mean")
    of_counts(axes)
    axes.set_xlabel(f"time in the log ({unit})" if series.clocked else "moment")
    axes.set_ylabel(_UNITS[outcome.loads.unit])
    legend_below(axes, columns=3)


def loads_figure(outcome: RanksOutcome) -> Figure | None:
    """Return the picture of the loads over time; None of a single moment."""
    if len(outcome.series.seconds) < 2:
        return None
    rows = -(-(min(len(outcome.series.ranks), _MOST_LINES) + 2) // 3)
    figure, axes = new_figure(6.2, height=3.2 + 0.18 * rows)
    draw_loads(outcome, axes)
    return figure


def headline(outcome: RanksOutcome) -> str:
    """Return the answer in one line."""
    if not outcome.shares:
        return "One rank: nothing can be out of balance"
    low, high = min(one.low for one in outcome.shares), max(one.high for one in outcome.shares)
    span = f"At most {_percent(high)}" if high - low < 5e-4 else f"{_percent(low)} to {_percent(high)}"
    if outcome.barrier.verdict == "no":
        return f"No barrier is seen; if there were one, {span[0].lower()}{span[1:]} of decoding would wait at it"
    span = f"By counts of requests {span[0].lower()}{span[1:]}" if outcome.loads.unit == "requests" else span
    barrier = "the barrier" if outcome.barrier.verdict == "yes" else "a barrier, if there is one"
    return f"{span} of the ranks' time of decoding waits at {barrier}"


def lead(outcome: RanksOutcome) -> list[str]:
    """Return the answer, what the loads show, and what to log."""
    return [
        f"{headline(outcome)}.",
        *(f"{finding.sentence}." for finding in outcome.findings),
        *(f"To log: {one}." for one in outcome.to_log),
    ]


def ranks_files(outcome: RanksOutcome, made: Made) -> dict[str, Any]:
    """Return report.html, ranks.json and the picture."""
    pictures = []
    figure = loads_figure(outcome)
    if figure is not None:
        caption = (
            "Each step takes as long as its heaviest rank needs; the grey area is what the mean rank waits for it."
        )
        pictures.append(Picture.of(figure, "loads", "Load of each rank over time", caption))
    versions = made.how["versions"]
    page = render_page(
        "ranks_page.html.jinja",
        version=versions["lbopt"],
        headline=headline(outcome),
        outcome=outcome,
        tables=ranks_tables(outcome),
        figures=pictures,
        command=made.command,
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
    )
    return {"ranks.json": outcome.to_dict(), **files_of(pictures), "report.html": page}


REPORT = StudyReport(
    tables=ranks_tables,
    csv={"ranks": lambda outcome: outcome.ranks(), "series": lambda outcome: outcome.moments()},
    others=ranks_files,
    draw=draw_loads,
    lead=lead,
    written="page",
    page="report.html",
)
