"""The picture of a placement study: which share of the layers has a gap of at least so much, a line for each R."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import line_style, new_figure
from lbopt.studies.placement import PlacementOutcome


def gap_figure(outcome: PlacementOutcome) -> Figure:
    """Return the figure of `draw_placement_gaps`."""
    figure, axes = new_figure(7.2, 4.2)
    draw_placement_gaps(outcome, axes)
    return figure


def draw_placement_gaps(outcome: PlacementOutcome, axes: Axes) -> None:
    """Draw greedy's gaps in percent, sorted, against the share of layers that are no better; all kinds together."""
    for index, R in enumerate(outcome.config.ranks):
        gaps = sorted((100 * one.gap for one in outcome.layers if one.R == R), reverse=True)
        shares = [100 * (place + 1) / len(gaps) for place in range(len(gaps))]
        axes.step(gaps, shares, where="post", label=f"R = {R}", **line_style(index))
    axes.set_xlim(left=0)
    axes.set_ylim(0, 102)
    axes.set_xlabel("largest load of greedy above the exact one (%)")
    axes.set_ylabel("layers with this gap or more (%)")
    axes.legend(frameon=False)
