"""Pictures of a scaling study: imbalance against slots, and what the exact rule leaves against the onset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.studies.scaling import ScalingCell, ScalingOutcome

_MARKS = "osD^v<>P*X"
_MOST_COLUMNS = 3


def imbalance_figure(outcome: ScalingOutcome) -> Figure:
    """Return a panel per number of workers: imbalance per worker against slots, one line a rule, FCFS's exact law."""
    workers = [G for G in outcome.config.workers if any(cell.fleet.G == G for cell in outcome.cells)]
    columns = 2 if len(workers) == 4 else min(_MOST_COLUMNS, len(workers))
    rows = -(-len(workers) // columns)
    figure, first = new_figure(0.8 + 3.2 * columns, 0.9 + 2.9 * rows)
    grid = figure.add_gridspec(rows, columns)
    for place, G in enumerate(workers):
        axes = first if place == 0 else figure.add_subplot(grid[place // columns, place % columns], sharey=first)
        axes.set_subplotspec(grid[place // columns, place % columns])
        draw_imbalance(outcome, axes, G)
        if place % columns == 0:
            axes.set_ylabel("imbalance per worker (tokens)")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=9)
    return figure


def draw_imbalance(outcome: ScalingOutcome, axes: Axes, G: int) -> None:
    """Draw the imbalance per worker of fleets of G workers against slots: a line for each rule, FCFS's exact law."""
    _dress(axes)
    for index, policy in enumerate(outcome.config.policies):
        cells = [cell for cell in outcome.of(policy) if cell.fleet.G == G and cell.mean.mean > 0]
        axes.errorbar(
            [cell.fleet.B for cell in cells],
            [cell.mean.mean / G for cell in cells],
            yerr=[1.96 * cell.mean.error / G for cell in cells],
            marker=_MARKS[index % len(_MARKS)],
            markersize=4,
            linewidth=1.2,
            label=_short(policy, outcome.config.policies),
            **line_style(index),
        )
    known = {cell.fleet.B: cell.fleet.fcfs / G for cell in outcome.cells if cell.fleet.G == G}
    axes.plot(list(known), list(known.values()), color="#57606a", linewidth=5, alpha=0.25, label="FCFS, exact law")
    axes.set_title(f"G = {G}", fontsize=10, loc="left")
    axes.xaxis.set_major_locator(FixedLocator(list(outcome.config.slots)))
    axes.set_xlabel("slots per worker, B")


def onset_figure(outcome: ScalingOutcome, policy: str) -> Figure:
    """Return what `policy` leaves of FCFS's imbalance against B / B*, with the inverse of Theorem 2's floor."""
    figure, axes = new_figure(7.2, 4.4)
    _dress(axes)
    least = min((cell.mean.mean / cell.fleet.fcfs for cell in outcome.of(policy) if cell.mean.mean > 0), default=1e-3)
    for index, G in enumerate(outcome.config.workers):
        cells = [cell for cell in outcome.of(policy) if cell.fleet.G == G]
        if not cells:
            continue
        colour = COLOURS[index % len(COLOURS)]
        where = [cell.fleet.B / cell.fleet.onset for cell in cells]
        left = [max(cell.mean.mean / cell.fleet.fcfs, least / 3) for cell in cells]
        axes.plot(where, left, color=colour, marker="o", markersize=4, linewidth=1.2, label=f"G = {G}")
        nothing = [(x, y) for x, y, cell in zip(where, left, cells, strict=True) if cell.mean.mean == 0]
        if nothing:
            axes.plot(*np.array(nothing).T, color=colour, marker="v", linestyle="", markersize=7)
        axes.plot(where, [1 / cell.fleet.floor for cell in cells], color=colour, linestyle="--", linewidth=1)
    axes.axvline(1.0, color="#57606a", linewidth=1)
    axes.annotate("B*", (1.0, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -12), textcoords="offset points")
    axes.set_xlabel("slots per worker over the onset, B / B*")
    axes.set_ylabel("share of FCFS's imbalance that is left")
    axes.legend(frameon=False, fontsize=9, title="dashed: Theorem 2\n▼: nothing left", title_fontsize=8)
    return figure


def law_figure(outcome: ScalingOutcome, policy: str) -> Figure:
    """Return the imbalance of `policy` over the law of the regime below the onset, against where that law ends."""
    figure, axes = new_figure(7.2, 4.4)
    _dress(axes)
    for index, G in enumerate(outcome.config.workers):
        cells = [cell for cell in outcome.of(policy) if cell.fleet.G == G and cell.mean.mean > 0]
        axes.errorbar(
            [_place(cell) for cell in cells],
            [cell.mean.mean / cell.fleet.levelled for cell in cells],
            yerr=[1.96 * cell.mean.error / cell.fleet.levelled for cell in cells],
            color=COLOURS[index % len(COLOURS)],
            marker=_MARKS[index % len(_MARKS)],
            markersize=4,
            linewidth=1.2,
            label=f"G = {G}",
        )
    axes.axhline(1.0, color="#57606a", linewidth=1)
    axes.set_xlabel("B p² (s_max−1)² / (2−p)")
    axes.set_ylabel("imbalance over the law")
    axes.legend(frameon=False, fontsize=9)
    return figure


def _short(policy: str, among: Sequence[str]) -> str:
    """Return the rule's name without options, unless another variant of it is in the picture."""
    name = policy.partition(":")[0]
    return name if sum(one.partition(":")[0] == name for one in among) == 1 else policy


def _place(cell: ScalingCell) -> float:
    """Return B over the slots from which a load's drift outweighs its forgetting."""
    p, s_max = cell.fleet.p, cell.fleet.s_max
    return cell.fleet.B * p**2 * (s_max - 1) ** 2 / (2 - p)


def _dress(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
