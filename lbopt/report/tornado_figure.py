"""The tornado of a cost study: what the price on each device hangs on, the longest bar on top."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, new_figure
from lbopt.studies.cost import CostOutcome, DeviceCost

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
