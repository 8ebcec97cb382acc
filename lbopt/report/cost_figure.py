"""The picture of a cost study: throughput against imbalance, with the published points of the Ascend cluster on it.

Both axes are relative to a router that counts requests (published: JSQ; ours: today's), because absolute figures of
different fleets do not compare. Published imbalance is the mean of max - min; ours is G * max - sum. Relative to
themselves they nearly agree. Full marks are published tokens a second; hollow ones are what the published TPOT alone
explains, which is what a step-time law speaks of: the rest of the published gain is a fuller batch.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.hardware.published import published_table
from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.studies.cost import CostOutcome, DeviceCost

_REFERENCE = "JSQ"
_MARKS = "o^sD"
_WIDEST = 2.2


def cost_figure(outcome: CostOutcome) -> Figure:
    """Return the figure of `draw_cost`."""
    figure, axes = new_figure(8.6, 5.0)
    draw_cost(outcome, axes)
    return figure


def draw_cost(outcome: CostOutcome, axes: Axes) -> None:
    """Draw throughput over today's against imbalance over today's."""
    _published(axes)
    for index, device in enumerate(outcome.devices):
        _device(axes, device, index)
    axes.axvline(1.0, color="#57606a", linewidth=0.8)
    axes.axhline(1.0, color="#57606a", linewidth=0.8)
    axes.set_xlim(-0.05, _WIDEST)
    axes.set_xlabel("imbalance over that of today's router (published: over JSQ's, at loads of their own)")
    axes.set_ylabel("tokens / s over today's (published: over JSQ's)")
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def _published(axes: Axes) -> None:
    table = published_table("balance-route")
    for mark, group in zip(_MARKS, dict.fromkeys(str(row["group"]) for row in table.rows), strict=False):
        rows = [row for row in table.rows if row["group"] == group]
        base = next(row for row in rows if row["method"] == _REFERENCE)
        spread = [float(row["spread_tokens"]) / float(base["spread_tokens"]) for row in rows]
        speed = [float(row["throughput_tok_s"]) / float(base["throughput_tok_s"]) for row in rows]
        steps = [float(base["tpot_p95_ms"]) / float(row["tpot_p95_ms"]) for row in rows]
        style = {"marker": mark, "linestyle": "", "markersize": 5, "color": "#8c959f"}
        axes.plot(spread, speed, label=f"BalanceRoute {group}, tokens / s", **style)  # type: ignore[arg-type]
        axes.plot(spread, steps, markerfacecolor="none", **style)  # type: ignore[arg-type]
    axes.plot([], [], "o", markerfacecolor="none", color="#8c959f", markersize=5, label="the same, 1 / TPOT P95")


def _device(axes: Axes, device: DeviceCost, index: int) -> None:
    """Draw the law from perfect balance to beyond today's imbalance, its interval, and the points priced."""
    today = device.points[0]
    level = next((p for p in device.points if p.point.imbalance == 0), None)
    colour = COLOURS[index % len(COLOURS)]
    if level is None or today.point.imbalance == 0:
        return
    left = np.linspace(0, _WIDEST, 60)
    figure = level.figures["throughput_gain_share"]
    for gain, width in ((figure.median, 1.6), (figure.low, 0.0), (figure.high, 0.0)):
        if width:
            axes.plot(
                left,
                _gained(gain, left),
                linewidth=width,
                label=f"{device.card.name}, {device.law}",
                **line_style(index),
            )
    axes.fill_between(left, _gained(figure.low, left), _gained(figure.high, left), color=colour, alpha=0.15)
    for cost in device.points[1:]:
        x = cost.point.imbalance / today.point.imbalance
        y = 1 + cost.figures["throughput_gain_share"].median
        axes.plot([x], [y], marker="*", markersize=9, color=colour)
        if index == 0:
            axes.annotate(cost.point.label, (x, y), xytext=(6, 4), textcoords="offset points", fontsize=8)


def _gained(gain: float, left: np.ndarray) -> np.ndarray:
    """Return throughput over today's where `left` of the imbalance is left and perfect balance gains `gain`.

    With today's step as 1, the waiting that balance removes is 1 - 1 / (1 + gain) of it.
    """
    waiting = 1 - 1 / (1 + gain)
    return np.asarray(1 / (1 - waiting * (1 - left)))
