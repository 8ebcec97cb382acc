"""The picture of a gap study of prefill batches: which share of the batches has a straggler of at least this gap."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, DASHES, new_figure
from lbopt.studies.batches import BatchesOutcome


def batch_gap_figure(outcome: BatchesOutcome) -> Figure:
    """Return the figure of `draw_batch_gaps`."""
    figure, axes = new_figure(8.6, 4.2)
    draw_batch_gaps(outcome, axes)
    return figure


def draw_batch_gaps(outcome: BatchesOutcome, axes: Axes) -> None:
    """Draw a curve for each rule (colour) and behaviour (dash) over the batches whose optimum is known.

    The first rules have the widest lines, so that curves which coincide show.
    """
    for place, behaviour in enumerate(outcome.config.behaviours):
        known = [one for one in outcome.judged if one.state.behaviour == behaviour and one.straggler_standing != "open"]
        for index, rule in enumerate(outcome.config.rules):
            gaps = sorted(
                (100 * one.straggler_gap(r) for one in known for r in one.rules if r.rule == rule), reverse=True
            )
            if gaps:
                axes.step(
                    [*gaps, 0],
                    [100 * (rank + 1) / len(gaps) for rank in range(len(gaps))] + [100],
                    where="post",
                    label=f"{rule}, batches under {behaviour}",
                    color=COLOURS[index % len(COLOURS)],
                    linestyle=DASHES[place % len(DASHES)],
                    linewidth=1 + 2.5 * (1 - (index + 1) / len(outcome.config.rules)),
                )
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 102)
    axes.set_xlabel("straggler above the least (%; linear up to 0.1, then logarithmic)")
    axes.set_ylabel("batches with this gap or more (%)")
    if axes.lines:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
