"""Pictures of a locality study: width of the band, routers by rate, decode workers, clusters.

Every change is against round-robin in the same world; bars are 95 % intervals over worlds, where there are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, GREY, error_line, half_interval, panels_of
from lbopt.report.locality_sweeps import BASE, fleets_of, over_rates, workloads_of
from lbopt.statistics import MeanOverSeeds
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

_DASH = {"decoders": "-", "barrier": "--"}
_MARK = {"decoders": "o", "barrier": "s"}
_CHANGE = "against round-robin (%)"
_LATENCIES = ("p50", "p99")
#: How far lines stand beside each other, so that their intervals do not hide each other; in places of the axis.
_ASIDE = 0.05


def locality_figures(outcome: LocalityOutcome) -> dict[str, Figure]:
    """Return the pictures of the chosen items by their names."""
    if not workloads_of(outcome):
        return {}
    items, found = outcome.config.items, {}
    if fleets_of(outcome):
        found["band"] = band_figure(outcome)
    if "routers" in items:
        found["routers"] = router_figure(outcome)
    if "pool" in items:
        found["pool"] = pool_figure(outcome)
    if "clusters" in items:
        found["clusters"] = cluster_figure(outcome)
    return found


def band_figure(outcome: LocalityOutcome) -> Figure:
    """Return a column a workload: change of P50 and P99, of experts, and busiest over mean, against the width."""
    workloads, fleets = workloads_of(outcome), fleets_of(outcome)
    figure, panels = panels_of(3, len(workloads), 8.4, (2.6, 1.5, 1.5))
    for column, workload in enumerate(workloads):
        top, middle, bottom = (row[column] for row in panels)
        for fleet in fleets:
            runs = [PlannedRun(fleet, WORKERS, RATE, eldr_at(width)) for width in WIDTHS]
            style: dict[str, Any] = {"linestyle": _DASH[fleet], "marker": _MARK[fleet]}
            for index, of in enumerate(_LATENCIES):
                values = [outcome.change(workload, run, of) for run in runs]
                beside = _ASIDE * (2 * index - 1 + (fleet == "barrier"))
                error_line(top, values, aside=beside, color=COLOURS[index], label=f"{of.upper()}, {fleet}", **style)
            experts = [outcome.change(workload, run, "experts") for run in runs]
            error_line(middle, experts, color=COLOURS[2], label=fleet, **style)
            busiest = [outcome.mean(workload, run, "busiest_over_mean") for run in runs]
            error_line(bottom, busiest, color=COLOURS[3], label=fleet, **style)
        published = _printed("band", workload, "P50 at tau 0.1")
        where = WIDTHS.index(0.1)
        span = (published.high - published.low, published.low)
        top.bar(where, span[0], 0.5, bottom=span[1], color=COLOURS[0], alpha=0.2, label="P50, printed for 0.1")
        top.use_sticky_edges = False  # the bar's end is none of the axis
        top.axhline(0.0, color=GREY, linewidth=0.8)
        top.set_title(f"{workload}, {RATE:g} requests/s", fontsize=10, loc="left")
        for axes in (top, middle, bottom):
            axes.set_xticks(range(len(WIDTHS)), [f"{width:g}" for width in WIDTHS])
            axes.set_xlim(-0.4, len(WIDTHS) - 0.6)
        bottom.set_xlabel("width of the band, tau")
    for row, label in zip(panels, (_CHANGE, f"experts\n{_CHANGE}", "busiest / mean"), strict=True):
        row[0].set_ylabel(label)
    _legend(figure, panels[0][0], 5 if len(workloads) > 1 else 3)
    return figure


def router_figure(outcome: LocalityOutcome) -> Figure:
    """Return a column a workload: change of P50 above and of P99 below, against the rate, a line a router."""
    workloads = workloads_of(outcome)
    figure, panels = panels_of(2, len(workloads), 7.2)
    for column, workload in enumerate(workloads):
        for row, of in enumerate(_LATENCIES):
            draw_routers(outcome, panels[row][column], workload, of)
        panels[1][column].set_xlabel("requests/s")
    for panel in panels:
        panel[0].set_ylabel(_CHANGE)
    _legend(figure, panels[0][0], len(ROUTERS) - 1)
    return figure


def draw_routers(outcome: LocalityOutcome, axes: Axes, workload: str, of: str) -> None:
    """Draw the change of one latency against the rate on one workload, a line for each router.

    Parameters
    ----------
    axes
        Where to draw.
    of
        The latency, "p50" or "p99".
    """
    rates = outcome.config.rates
    for index, rule in enumerate(rule for rule in ROUTERS if rule != BASE):
        runs = [PlannedRun("decoders", WORKERS, rate, rule) for rate in rates]
        values = [outcome.change(workload, run, of) for run in runs]
        aside = 0.008 * (rates[-1] - rates[0] or 1.0) * (index - 2)
        error_line(axes, values, x=rates, aside=aside, color=COLOURS[index], marker="osD^v"[index], label=rule)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.set_title(f"{workload}, {of.upper()}", fontsize=10, loc="left")


def pool_figure(outcome: LocalityOutcome) -> Figure:
    """Return a panel for P50 and one for P99: change of eldr by decode workers, a line a workload, and as printed."""
    workloads = workloads_of(outcome)
    figure, panels = panels_of(1, 2, 4.0)
    for axes, of in zip(panels[0], _LATENCIES, strict=True):
        for index, workload in enumerate(workloads):
            values = [over_rates(outcome, workload, pool, "eldr", of) for pool in POOLS]
            style: dict[str, Any] = {"color": COLOURS[index], "marker": "os"[index], "label": f"{workload}, ours"}
            error_line(axes, values, aside=_ASIDE * (index - 0.5), **style)
        asked = [_printed("pool", "language", f"{of.upper()}, {pool} decoders") for pool in POOLS]
        numbers = [one.value for one in asked if one.value is not None]
        axes.plot(range(len(POOLS)), numbers, "x:", color=GREY, linewidth=1.2, label="language, printed")
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        axes.set_xticks(range(len(POOLS)), [str(pool) for pool in POOLS])
        axes.set_xlabel("decode workers")
        axes.set_title(of.upper(), fontsize=10, loc="left")
    panels[0][0].set_ylabel(_CHANGE)
    _legend(figure, panels[0][0], 3)
    return figure


def cluster_figure(outcome: LocalityOutcome) -> Figure:
    """Return a panel a workload: change of P50 and P99 with balanced and vanilla clusters, and the printed ends."""
    workloads = workloads_of(outcome)
    figure, panels = panels_of(1, len(workloads), 4.0)
    groups = [(of, width) for width in (0.1, 0.0) for of in _LATENCIES]
    for axes, workload in zip(panels[0], workloads, strict=True):
        for index, kind in enumerate(("balanced", "vanilla")):
            runs = [(of, PlannedRun("decoders", WORKERS, RATE, eldr_at(width, kind))) for of, width in groups]
            values = [outcome.change(workload, run, of) for of, run in runs]
            where = [place + 0.4 * (index - 0.5) for place in range(len(groups))]
            _bars(axes, where, values, color=COLOURS[index], label=kind)
            for place, (of, width) in zip(where, groups, strict=True):
                if width == 0.1:
                    printed = _printed("clusters", workload, f"{of.upper()}, {kind}")
                    end = max(printed.low, printed.high, key=abs)  # "up to" it, from nothing
                    axes.plot([place - 0.18, place + 0.18], [end, end], color="black", linewidth=2.5)
        axes.plot([], [], color="black", linewidth=2, label="printed, up to")
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        names = [f"{of.upper()}\ntau = {width:g}" for of, width in groups]
        axes.set_xticks(range(len(groups)), names)
        axes.set_title(f"{workload}, {RATE:g} requests/s", fontsize=10, loc="left")
    panels[0][0].set_ylabel(_CHANGE)
    _legend(figure, panels[0][0], 3)
    return figure


def _bars(axes: Axes, where: Sequence[float], values: Sequence[MeanOverSeeds | None], **style: Any) -> None:
    known = [(place, value) for place, value in zip(where, values, strict=True) if value is not None]
    if known:
        axes.bar(
            [place for place, _ in known],
            [value.mean for _, value in known],
            0.38,
            yerr=[half_interval(value) for _, value in known],
            capsize=3,
            ecolor=GREY,
            alpha=0.8,
            **style,
        )


def _printed(item: str, workload: str, quantity: str) -> Printed:
    """Return the published figure of a question."""
    (found,) = (one for one in questions() if (one.item, one.workload, one.quantity) == (item, workload, quantity))
    return found.printed


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    entries = zip(*axes.get_legend_handles_labels(), strict=True)
    handles, labels = zip(*sorted(entries, key=lambda entry: "printed" in entry[1]), strict=True)  # ours first
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
