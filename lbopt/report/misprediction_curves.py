"""Picture: gap and long-run imbalance against the strength of the error, one row of panels a rule.

Noise and shuffling are drawn at their own strengths, a bias at abs(log2 bias), with a line for outputs believed too
short and one for those believed too long. All lines begin at the exact oracle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import StrMethodFormatter

from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.studies.misprediction import Case, ForecastVariant, MispredictionOutcome
from lbopt.studies.misprediction.forecasts import MYOPIC
from lbopt.studies.misprediction.outcome import ForecastCost

_GREY = "#57606a"
_LINES = ("noise (σ)", "too short (|log2 bias|)", "too long (|log2 bias|)", "shuffled (share)")
_LEGEND_COLUMNS = 5
#: Least distance of two ticks, in square roots of strengths.
_TICKS_APART = 0.12

Point = tuple[float, float, float]  # strength, value, half an interval


def misprediction_figure(outcome: MispredictionOutcome) -> Figure:
    """Return the two panels of each rule, with one legend."""
    costs, rules = outcome.costs(), outcome.config.rules
    figure, first = new_figure(9.5, 1.6 + 3.6 * len(rules))
    grid = GridSpec(len(rules), 2, figure=figure)
    for row, rule in enumerate(rules):
        own = [cost for cost in costs if cost.case.rule is None or cost.case.rule.name == rule.name]
        left = first if row == 0 else figure.add_subplot(grid[row, 0])
        left.set_subplotspec(grid[row, 0])
        right = figure.add_subplot(grid[row, 1])
        for axes in (left, right):
            axes.grid(visible=True, alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel("strength of the error")
        draw_by_strength(own, axes=left, long_run=False)
        draw_by_strength(own, axes=right, long_run=True)
        left.set_ylabel("mean gap over the window (tokens)")
        right.set_ylabel("imbalance of the long run (tokens)")
        left.set_title(rule.name, fontsize=10, loc="left")
    handles, labels = _legend(figure)
    figure.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False, fontsize=9)
    where = f"{outcome.trace['name']}, window of {outcome.config.horizon} steps"
    figure.suptitle(f"What a wrong forecast costs: {where}", fontsize=11)
    return figure


def draw_by_strength(costs: Sequence[ForecastCost], axes: Axes, *, long_run: bool) -> None:
    """Draw a line for each kind of error, and level lines for the rule that does not look and learnt forecasts."""
    lines: dict[str, list[Point]] = {name: [] for name in _LINES}
    levels: list[tuple[Case, float]] = []
    for cost in costs:
        value, half = _value(cost, long_run=long_run)
        variant = cost.case.variant
        if value is None or (variant is not None and variant.of_runs_alone and not long_run):
            continue
        if variant is None:
            levels.append((cost.case, value))
        elif variant.kind == "exact":
            for points in lines.values():
                points.append((0.0, value, half))
        elif variant.strength is not None:
            for name in _lines_of(variant):
                lines[name].append((_strength(variant), value, half))
        elif not variant.other and variant.hold_anchor is None:  # held ones are nearly fresh ones
            levels.append((cost.case, value))
    for index, (name, points) in enumerate(lines.items()):
        if len(points) > 1:
            x, y, half_widths = zip(*sorted(points), strict=True)
            axes.errorbar(
                x, y, half_widths, marker="o", markersize=4, linewidth=1.4, capsize=2, label=name, **line_style(index)
            )
    for case, value in levels:
        axes.axhline(value, label=case.forecast if case.variant is not None else MYOPIC, **_level_style(case.variant))
    _scale_strengths(axes, {strength for points in lines.values() for strength, _, _ in points})
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _level_style(variant: ForecastVariant | None) -> dict[str, Any]:
    """Return the style of a level line: a colour by kind; dotted without a gate, dash-dotted where fresh."""
    if variant is None:
        return {"color": COLOURS[7], "linestyle": "-", "linewidth": 1.8}
    if variant.kind == "no window":
        return {"color": COLOURS[6], "linestyle": "-", "linewidth": 1.8}
    colour = {"survival": COLOURS[4], "memorised": COLOURS[5], "stale": COLOURS[6]}.get(variant.kind, _GREY)
    dash = ":" if variant.gate == 0 or variant.kind == "stale" else "-." if variant.refresh is not None else "--"
    return {"color": colour, "linestyle": dash, "linewidth": 1.4}


def _scale_strengths(axes: Axes, strengths: set[float]) -> None:
    """Give small strengths room: by their square roots, with a tick where they stand apart."""
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    axes.set_xlim(0, 1.05 * max(strengths, default=1.0) or 1.0)
    ticks: list[float] = []
    for strength in sorted(strengths):
        if not ticks or math.sqrt(strength) - math.sqrt(ticks[-1]) > _TICKS_APART:
            ticks.append(strength)
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])


def _value(cost: ForecastCost, *, long_run: bool) -> tuple[float | None, float]:
    if not long_run:
        known = cost.gap is not None and not math.isnan(cost.gap.gap_mean_tokens)
        return (cost.gap.gap_mean_tokens, 0.0) if known and cost.gap is not None else (None, 0.0)
    if not cost.metrics:
        return None, 0.0
    found = cost.metrics["imbalance_tokens"].value
    return found.mean, 0.0 if found.low is None else found.mean - found.low


def _lines_of(variant: ForecastVariant) -> tuple[str, ...]:
    assert variant.strength is not None
    if variant.kind == "noise":
        return _LINES[:1]
    if variant.kind == "shuffled":
        return _LINES[3:]
    return _LINES[1:2] if variant.strength < 1 else _LINES[2:3] if variant.strength > 1 else _LINES[1:3]


def _strength(variant: ForecastVariant) -> float:
    assert variant.strength is not None
    return abs(math.log2(variant.strength)) if variant.kind == "bias" else variant.strength


def _legend(figure: Figure) -> tuple[list[Artist], list[str]]:
    """Return handle and label of every line once, also where a study ended before its long runs."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = sorted(found, key=lambda label: label not in _LINES)
    return [found[label] for label in order], order
