"""The bill as a page that needs nothing else: what today's tokens cost with every router, and what that hangs on.

The picture of a cost study: throughput against imbalance, with the published points of the Ascend cluster on it.

Both axes are relative to a router that counts requests (published: JSQ; ours: today's), because absolute figures of
different fleets do not compare. Published imbalance is the mean of max - min; ours is G * max - sum. Relative to
themselves they nearly agree. Full marks are published tokens a second; hollow ones are what the published TPOT alone
explains, which is what a step-time law speaks of: the rest of the published gain is a fuller batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.hardware.published import published_table
from lbopt.report.cost_report import bill_table, cost_tables, lead
from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.report.page import Picture, render_page
from lbopt.studies.cost import CostOutcome, DeviceCost

_REFERENCE = "JSQ"
_MARKS = "o^sD"
_WIDEST = 2.2


def cost_figure(outcome: CostOutcome) -> Figure:
    """Return the figure of `draw_cost`."""
    figure, axes = new_figure(8.6, 5.0)
    draw_cost_figure(outcome, axes)
    return figure


def draw_cost_figure(outcome: CostOutcome, axes: Axes) -> None:
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


_MOST_DEVICES = 4


def tornado_figure(outcome: CostOutcome) -> Figure | None:
    """Return a panel a device with a known price, or nothing where no device has one; `cost.csv` has all devices."""
    devices = [device for device in outcome.devices if device.sensitivities][:_MOST_DEVICES]
    if not devices:
        return None
    figure, first = new_figure(7.2, 0.6 + 2.4 * len(devices))
    grid = figure.add_gridspec(len(devices), 1)
    for place, device in enumerate(devices):
        axes = first if place == 0 else figure.add_subplot(grid[place])
        axes.set_subplotspec(grid[place])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, axis="x", alpha=0.25)
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.use_sticky_edges = False  # else the longest bar begins on the axis and looks cut off
        _bars(axes, device)
    return figure


def _bars(axes: Axes, device: DeviceCost) -> None:
    nominal = device.points[0].figures["dollars_per_million"].nominal
    for height, one in enumerate(reversed(device.sensitivities)):  # the first is the longest and comes on top
        axes.barh(height, nominal - one.low, left=one.low, color=COLOURS[0], height=0.6)
        axes.barh(height, one.high - nominal, left=nominal, color=COLOURS[1], height=0.6)
    axes.set_yticks(range(len(device.sensitivities)), [one.constant for one in reversed(device.sensitivities)])
    axes.axvline(nominal, color="black", linewidth=0.8)
    axes.set_xlabel(f"{device.card.name}: USD a million tokens", fontsize=9)


def cost_pictures(outcome: CostOutcome) -> list[Picture]:
    """Return the tornado of the price, where it is known, and throughput against imbalance."""
    tornado = tornado_figure(outcome)
    caption = "A group of constants at its 5 and at its 95 % end, all others at their nominal values."
    pictures = [] if tornado is None else [Picture.of(tornado, "tornado", "What the price hangs on", caption)]
    caption = "Lines are laws, bands their 90 % intervals, stars the load points; grey marks are published."
    return [*pictures, Picture.of(cost_figure(outcome), "cost", "Throughput against imbalance", caption)]


def render_cost_page(outcome: CostOutcome, pictures: list[Picture], provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML, the bill first.

    Parameters
    ----------
    provenance
        Versions, processor, time and command.
    """
    bill = bill_table(outcome.devices, outcome) if outcome.devices else None
    return render_page(
        "cost_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        source=outcome.source,
        leads=lead(outcome),
        notes=outcome.notes,
        tables=[*([] if bill is None else [bill]), *(one for one in cost_tables(outcome) if one != bill)],
        figures=pictures,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )
