"""Pictures of a locality study: width of the band, routers by rate, decode workers, clusters.

Every change is against round-robin in the same world; bars are 95 % intervals over worlds, where there are two.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, GREY, dressed, error_bars, error_line, grid_of
from lbopt.report.locality_sweeps import BASE, fleets_of, over_rates, workloads_of
from lbopt.studies.locality import (
    POOLS,
    RATE,
    ROUTERS,
    WIDTHS,
    WORKERS,
    LocalityOutcome,
    PlannedRun,
    eldr_at,
    questions,
)
from lbopt.studies.printed import Printed

_STYLE: dict[str, dict[str, Any]] = {
    "decoders": {"linestyle": "-", "marker": "o"},
    "barrier": {"linestyle": "--", "marker": "s"},
}
_CHANGE = "against round-robin (%)"
_LATENCIES = ("p50", "p99")
_PRINTED = "printed"
#: How far lines stand beside each other, so that their intervals do not hide each other; in places of the axis.
_ASIDE = 0.05


def locality_figures(outcome: LocalityOutcome) -> dict[str, Figure]:
    """Return the pictures of the chosen items by their names."""
    if not workloads_of(outcome):
        return {}
    items = {"routers": router_figure, "pool": pool_figure, "clusters": cluster_figure}
    band = {"band": band_figure(outcome)} if fleets_of(outcome) else {}
    return band | {name: draw(outcome) for name, draw in items.items() if name in outcome.config.items}


def band_figure(outcome: LocalityOutcome) -> Figure:
    """Return a column a workload: change of P50 and P99, of experts, and busiest over mean, against the width."""
    workloads, labels = workloads_of(outcome), (_CHANGE, f"experts\n{_CHANGE}", "busiest / mean")

    def panel(axes: Axes, row: int, workload: str) -> None:
        _band_lines(outcome, axes, row, workload)
        if row == 0:
            published = _printed("band", workload, "P50 at tau 0.1")
            span: dict[str, Any] = {"height": published.high - published.low, "bottom": published.low}
            axes.bar(WIDTHS.index(0.1), width=0.5, color=COLOURS[0], alpha=0.2, label="P50, printed for 0.1", **span)
            axes.use_sticky_edges = False  # the bar's end is none of the axis
        dressed(
            axes,
            level=None if row else 0.0,
            title="" if row else f"{workload}, {RATE:g} requests/s",
            ticks=(range(len(WIDTHS)), [f"{width:g}" for width in WIDTHS]),
            xlim=(-0.4, len(WIDTHS) - 0.6),
            xlabel="width of the band, tau" if row == len(labels) - 1 else "",
        )

    return grid_of(
        workloads, labels, 8.4, panel, legend=5 if len(workloads) > 1 else 3, last=_PRINTED, shares=(2.6, 1.5, 1.5)
    )


def _band_lines(outcome: LocalityOutcome, axes: Axes, row: int, workload: str) -> None:
    """Draw the quantities of a row, a line a fleet."""
    for fleet in fleets_of(outcome):
        runs = [PlannedRun(fleet, WORKERS, RATE, eldr_at(width)) for width in WIDTHS]
        for index, of in enumerate((_LATENCIES, ("experts",), ("busiest_over_mean",))[row]):
            of_run = outcome.change if row < 2 else outcome.mean
            aside = 0.0 if row else _ASIDE * (2 * index - 1 + (fleet == "barrier"))
            label = fleet if row else f"{of.upper()}, {fleet}"
            style = {"color": COLOURS[index + row + (row > 0)], "label": label, "aside": aside, **_STYLE[fleet]}
            error_line(axes, [of_run(workload, run, of) for run in runs], **style)


def router_figure(outcome: LocalityOutcome) -> Figure:
    """Return a column a workload: change of P50 above and of P99 below, against the rate, a line a router."""

    def panel(axes: Axes, row: int, workload: str) -> None:
        draw_routers(outcome, axes, workload, _LATENCIES[row])
        axes.set_xlabel("requests/s" if row else "")

    return grid_of(workloads_of(outcome), (_CHANGE, _CHANGE), 7.2, panel, legend=len(ROUTERS) - 1)


def draw_routers(outcome: LocalityOutcome, axes: Axes, workload: str, of: str) -> None:
    """Draw the change of one latency, "p50" or "p99", against the rate on one workload, a line for each router."""
    rates = outcome.config.rates
    for index, rule in enumerate(rule for rule in ROUTERS if rule != BASE):
        values = [outcome.change(workload, PlannedRun("decoders", WORKERS, rate, rule), of) for rate in rates]
        aside = 0.008 * (rates[-1] - rates[0] or 1.0) * (index - 2)
        error_line(axes, values, x=rates, aside=aside, color=COLOURS[index], marker="osD^v"[index], label=rule)
    dressed(axes, level=0.0, ticks=(rates, [f"{rate:g}" for rate in rates]), title=f"{workload}, {of.upper()}")


def pool_figure(outcome: LocalityOutcome) -> Figure:
    """Return a panel for P50 and one for P99: change of eldr by decode workers, a line a workload, and as printed."""

    def panel(axes: Axes, _row: int, of: str) -> None:
        for index, workload in enumerate(workloads_of(outcome)):
            values = [over_rates(outcome, workload, pool, "eldr", of) for pool in POOLS]
            style: dict[str, Any] = {"color": COLOURS[index], "marker": "os"[index], "label": f"{workload}, ours"}
            error_line(axes, values, aside=_ASIDE * (index - 0.5), **style)
        asked = [_printed("pool", "language", f"{of.upper()}, {pool} decoders") for pool in POOLS]
        numbers = [one.value for one in asked if one.value is not None]
        axes.plot(range(len(POOLS)), numbers, "x:", color=GREY, linewidth=1.2, label="language, printed")
        ticks = range(len(POOLS)), [str(pool) for pool in POOLS]
        dressed(axes, level=0.0, ticks=ticks, xlabel="decode workers", title=of.upper())

    return grid_of(_LATENCIES, (_CHANGE,), 4.0, panel, legend=3, last=_PRINTED)


def cluster_figure(outcome: LocalityOutcome) -> Figure:
    """Return a panel a workload: change of P50 and P99 with balanced and vanilla clusters, and the printed ends."""
    groups = [(of, width) for width in (0.1, 0.0) for of in _LATENCIES]

    def panel(axes: Axes, _row: int, workload: str) -> None:
        for index, kind in enumerate(("balanced", "vanilla")):
            runs = [(of, PlannedRun("decoders", WORKERS, RATE, eldr_at(width, kind))) for of, width in groups]
            values = [outcome.change(workload, run, of) for of, run in runs]
            where = [place + 0.4 * (index - 0.5) for place in range(len(groups))]
            error_bars(axes, where, values, 0.38, color=COLOURS[index], label=kind, capsize=3)
            for place, (of, width) in zip(where, groups, strict=True):
                if width == 0.1:
                    printed = _printed("clusters", workload, f"{of.upper()}, {kind}")
                    end = max(printed.low, printed.high, key=abs)  # "up to" it, from nothing
                    axes.plot([place - 0.18, place + 0.18], [end, end], color="black", linewidth=2.5)
        axes.plot([], [], color="black", linewidth=2, label="printed, up to")
        names = [f"{of.upper()}\ntau = {width:g}" for of, width in groups]
        dressed(axes, level=0.0, ticks=(range(len(groups)), names), title=f"{workload}, {RATE:g} requests/s")

    return grid_of(workloads_of(outcome), (_CHANGE,), 4.0, panel, legend=3, last=_PRINTED)


def _printed(item: str, workload: str, quantity: str) -> Printed:
    """Return the published figure of a question."""
    (found,) = (one for one in questions() if (one.item, one.workload, one.quantity) == (item, workload, quantity))
    return found.printed
