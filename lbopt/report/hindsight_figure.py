"""The figure of a study of hindsight: each rule's seconds beside the interval of the best with all lengths known."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, GREY, legend_below, new_figure
from lbopt.studies.hindsight import HindsightOutcome

_THICK = 9.0


def hindsight_figure(outcome: HindsightOutcome) -> Figure | None:
    """Return the figure of `draw_hindsight`; None where no rule was run."""
    if not outcome.rules:
        return None
    figure, axes = new_figure(8.0, 1.6 + 0.42 * len(outcome.rules))
    draw_hindsight(outcome, axes)
    return figure


def draw_hindsight(outcome: HindsightOutcome, axes: Axes) -> None:
    """Draw, for each rule, its seconds, the interval of the optimum of its starts, and the least of any rule."""
    names = [one.rule for one in outcome.rules]
    rows = list(range(len(names)))
    axes.hlines(
        rows,
        [one.optimum_seconds.low for one in outcome.rules],
        [one.optimum_seconds.high for one in outcome.rules],
        color=COLOURS[5],
        linewidth=_THICK,
        label="best placement of the same starts lies here",
    )
    axes.plot([one.seconds for one in outcome.rules], rows, "o", color=COLOURS[1], label="the rule")
    least = outcome.rules[0].share_of_ceiling * outcome.rules[0].seconds
    axes.axvline(least, color=GREY, linewidth=1.0, linestyle=":", label="least of any rule")
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds of all steps")
    legend_below(axes, columns=3)
