"""How a study of old sight is shown: a table for each fleet, and a picture of imbalance against the age of reports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from lbopt.report import numbers
from lbopt.report.contents import Contents, Made
from lbopt.report.figures import line_style, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.studies.stale import StaleCell, StaleOutcome
from lbopt.table import Table

_MARKS = "osD^v<>P*X"

#: Shares below are not shown.
_LEAST = 0.02


def stale_tables(outcome: StaleOutcome) -> list[Table]:
    """Return a table for each fleet."""
    return [_table(outcome, G) for G in outcome.config.workers if any(cell.G == G for cell in outcome.cells)]


def stale_csv(outcome: StaleOutcome) -> list[dict[str, Any]]:
    """Return a row a run, with full precision."""
    return [
        asdict(cell) | {"period_steps": cell.period_steps, "forecast": outcome.forecast(cell)} for cell in outcome.cells
    ]


def ages_figure(outcome: StaleOutcome) -> Figure:
    """Return a panel a fleet: imbalance as a share of a random split's, against the age of reports; the law's floors.

    Runs that start requests in bursts are in the table alone, since the floor does not speak of them.
    """
    workers = [G for G in outcome.config.workers if any(cell.G == G for cell in outcome.cells)]
    figure, first = new_figure(0.8 + 3.9 * len(workers), 4.6)
    grid = figure.add_gridspec(1, len(workers))
    first.set_subplotspec(grid[0, 0])
    for place, G in enumerate(workers):
        axes = first if place == 0 else figure.add_subplot(grid[0, place], sharey=first)
        _panel(outcome, axes, G)
        if place == 0:
            axes.set_ylabel("imbalance / that of a random split")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=9)
    return figure


def draw_ages(outcome: StaleOutcome, axes: Axes) -> None:
    """Draw the panel of the first fleet on axes."""
    _panel(outcome, axes, outcome.config.workers[0])
    axes.set_ylabel("imbalance / that of a random split")


def _panel(outcome: StaleOutcome, axes: Axes, G: int) -> None:
    periods = (None, *outcome.config.periods)
    for index, policy in enumerate(outcome.config.policies):
        cells = [cell for cell in outcome.of(G, policy) if not cell.bursts]
        axes.plot(
            [periods.index(cell.period) for cell in cells],
            [cell.imbalance / cell.random for cell in cells],
            marker=_MARKS[index % len(_MARKS)],
            markersize=4,
            linewidth=1.3,
            label=policy,
            **line_style(index),
        )
    for least, label, shade in (
        (outcome.floor, "below the floor of any rule", 0.3),
        (outcome.alike, "below the floor of workers alike", 0.14),
    ):
        shares = [
            (place, low / cell.random)
            for place, period in enumerate(periods)
            for cell in outcome.cells
            if cell.G == G and cell.period == period and (low := least(cell)) is not None
        ]
        if shares:
            places = sorted({place for place, _ in shares})
            lows = [min(share for at, share in shares if at == place) for place in places]
            axes.fill_between(places, lows, color="#57606a", alpha=shade, linewidth=0, label=label)
    axes.set_yscale("log")
    axes.set_ylim(_LEAST, max(axes.get_ylim()[1], 1.0))
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(len(periods)), ["truth", *(_seconds(period) for period in outcome.config.periods)])
    axes.set_xlabel("time between reports")
    axes.set_title(f"G = {G}", fontsize=10, loc="left")
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _table(outcome: StaleOutcome, G: int) -> Table:
    rows = [(policy, *_row(outcome, cell)) for policy in outcome.config.policies for cell in outcome.of(G, policy)]
    lead = "counts what it sends" if outcome.config.sight == "counts" else "is blind between reports"
    return Table(
        f"G = {G}",
        f"Imbalance in thousand tokens, loads read after admission; a front end {lead}. Floor: the least that any rule "
        "leaves at this age, where arrivals are even and slots are free. Alike: the least of a rule that does not "
        "gather large requests on few workers, so that as much is unseen of each. Forecast: an estimate from the "
        "rule's imbalance by true sight and the latter, for rules that count. Random: a random split of as many "
        "requests.",
        (
            *("policy", "reports", "steps", "imbalance", "floor", "alike", "forecast"),
            *("measured / forecast", "random", "busy", "P99 first token"),
        ),
        rows,
    )


def _row(outcome: StaleOutcome, cell: StaleCell) -> tuple[str, ...]:
    said, floor, alike = outcome.forecast(cell), outcome.floor(cell), outcome.alike(cell)
    return (
        "truth" if cell.period is None else _seconds(cell.period),
        f"{cell.period_steps:.3g}" if cell.period is not None else "0",
        f"{cell.imbalance / 1000:,.1f}",
        numbers.UNKNOWN if floor is None else f"{floor / 1000:,.1f}",
        numbers.UNKNOWN if alike is None else f"{alike / 1000:,.1f}",
        numbers.UNKNOWN if said is None else f"{said / 1000:,.1f}",
        numbers.UNKNOWN if not said else f"{cell.imbalance / said:.2f}",
        f"{cell.random / 1000:,.1f}",
        numbers.share(cell.occupancy),
        f"{cell.first_token_p99:,.2f} s",
    )


def _seconds(period: float) -> str:
    return f"{period * 1000:g} ms" if period < 1 else f"{period:g} s"


def stale_contents(outcome: StaleOutcome, _made: Made) -> Contents:
    """Return stale.csv and the picture."""
    return Contents(tables={"stale": stale_csv(outcome)}, figures={"ages": ages_figure(outcome)})


REPORT = StudyReport(tables=stale_tables, contents=stale_contents)
