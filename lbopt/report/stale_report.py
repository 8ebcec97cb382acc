"""How a study of stale state is shown: a table for each fleet, and imbalance against the age of reports."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from lbopt import numbers
from lbopt.report.figures import GREY, dress, marked_line, panel_each
from lbopt.report.study_report import StudyReport
from lbopt.studies.stale import StaleOutcome
from lbopt.table import Column, Table, records, table_of

#: Shares below are not shown.
_LEAST = 0.02
_LABEL = "imbalance / that of a random split"

_thousand = numbers.fixed(1, 1e-3)


def _age(period: float | None) -> str:
    if period is None:
        return "truth"
    return f"{period * 1000:g} ms" if period < 1 else f"{period:g} s"


COLUMNS = (
    Column("policy", "the rule"),
    Column("G", "number of workers"),
    Column("period", "seconds between reports; none for the truth", "reports", _age),
    Column("imbalance", "mean imbalance, tokens", shown=_thousand),
    Column("mean_load", "tokens of a worker"),
    Column("occupancy", "share of the slots that are busy", "busy", numbers.share),
    Column(
        "first_token_p99", "seconds to the first token, 99th percentile", "P99 first token", numbers.fixed(2, 1, " s")
    ),
    Column("tpot_p99", "seconds a token, 99th percentile"),
    Column("tokens_per_second", "of the fleet"),
    Column("step_seconds", "mean length of a step"),
    Column("running", "requests that run on a worker"),
    Column("admission", "pooled or immediate"),
    Column("floor", "the law's floor of any rule at this age, tokens"),
    Column("alike", "the law's floor of a rule that keeps workers alike, tokens"),
    Column("random", "what a random split leaves by the law, tokens", shown=_thousand),
    Column("even", "what even arrivals leave by the law, unseen, tokens"),
    Column("seen", "the law's share of busy slots where they are filled at reports alone"),
    Column("period_steps", "steps between reports", "steps", "{:.3g}".format),
    Column(
        "forecast", "what the law makes of the rule's imbalance by true state", "", _thousand, StaleOutcome.forecast
    ),
)

_BY_NAME = {one.name: one for one in COLUMNS}
_SHOWN = (
    *(_BY_NAME[name] for name in ("policy", "period", "period_steps", "imbalance")),
    Column("floor", of=StaleOutcome.floor, shown=_thousand),
    Column("alike", of=StaleOutcome.alike, shown=_thousand),
    _BY_NAME["forecast"],
    Column(
        "measured / forecast",
        of=lambda outcome, cell: cell.imbalance / said if (said := outcome.forecast(cell)) else None,
        shown=numbers.fixed(2),
    ),
    *(_BY_NAME[name] for name in ("random", "occupancy", "first_token_p99")),
)


def stale_csv(outcome: StaleOutcome) -> list[dict[str, object]]:
    """Return a row a run, with full precision."""
    return records(COLUMNS, outcome, outcome.cells)


def stale_tables(outcome: StaleOutcome) -> list[Table]:
    """Return a table for each fleet."""
    lead = "counts what it sends" if outcome.config.sight == "counts" else "is blind between reports"
    caption = (
        f"Imbalance in thousand tokens, loads read after admission; a front end {lead}. Floor: the least that any rule "
        "leaves at this age, where arrivals are even and slots are free. Alike: the least of a rule that does not "
        "gather large requests on few workers, so that as much is unseen of each. Forecast: an estimate from the "
        "rule's imbalance by true sight and the latter, for rules that count. Random: a random split of as many "
        "requests."
    )
    rows = {G: [one for rule in outcome.config.policies for one in outcome.of(G, rule)] for G in outcome.config.workers}
    return [table_of(f"G = {G}", caption, _SHOWN, outcome, cells) for G, cells in rows.items() if cells]


def ages_figure(outcome: StaleOutcome) -> Figure:
    """Return a panel a fleet: imbalance as a share of a random split's, against the age of reports; the law's floors.

    Runs that start requests in bursts are in the table alone, since the floor does not speak of them.
    """
    workers = [G for G in outcome.config.workers if any(cell.G == G for cell in outcome.cells)]
    size = 0.8 + 3.9 * len(workers), 4.6
    return panel_each(workers, lambda axes, G: _panel(outcome, axes, G), _LABEL, len(workers), size)


def draw_ages(outcome: StaleOutcome, axes: Axes) -> None:
    """Draw the panel of the first fleet on axes."""
    _panel(outcome, axes, outcome.config.workers[0])
    axes.set_ylabel(_LABEL)


def _panel(outcome: StaleOutcome, axes: Axes, G: int) -> None:
    ages = outcome.config.ages
    for index, policy in enumerate(outcome.config.policies):
        cells = [cell for cell in outcome.of(G, policy) if not cell.bursts]
        places = [ages.index(cell.period) for cell in cells]
        shares = [cell.imbalance / cell.random for cell in cells]
        axes.plot(places, shares, linewidth=1.3, label=policy, **marked_line(index))
    for least, label, shade in (
        (outcome.floor, "below the floor of any rule", 0.3),
        (outcome.alike, "below the floor of workers alike", 0.14),
    ):
        lows: dict[int, float] = {}
        for cell in outcome.cells:
            low = least(cell)
            if cell.G == G and low is not None:
                place = ages.index(cell.period)
                lows[place] = min(low / cell.random, lows.get(place, 1e300))
        if lows:
            places = sorted(lows)
            axes.fill_between(places, [lows[at] for at in places], color=GREY, alpha=shade, linewidth=0, label=label)
    axes.set_yscale("log")
    axes.set_ylim(_LEAST, max(axes.get_ylim()[1], 1.0))
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(len(ages)), list(map(_age, ages)))
    axes.set_xlabel("time between reports")
    axes.set_title(f"G = {G}", fontsize=10, loc="left")
    dress(axes)


REPORT = StudyReport(
    tables=stale_tables,
    csv={"stale": stale_csv},
    figures=lambda outcome: {"ages": ages_figure(outcome)},
    draw=draw_ages,
    aliases={"ages": "stale"},
)
