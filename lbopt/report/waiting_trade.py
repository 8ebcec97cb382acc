"""Picture: what balance costs in waiting. A rule that balances by never admitting giants shows it here."""

from __future__ import annotations

from matplotlib.axes import Axes

from lbopt.report.figures import COLOURS, legend_below
from lbopt.studies.gap import GapOutcome, LongRun


def draw_waiting_trade(outcome: GapOutcome, axes: Axes) -> None:
    """Draw the longest wait against the mean imbalance of each long run of the first seed; equal runs share a point."""
    alike: dict[tuple[float, int], list[LongRun]] = {}
    for run in outcome.long_runs:
        if run.seed == outcome.config.seed:
            alike.setdefault((run.metrics.imbalance_tokens, run.metrics.waiting_max_steps), []).append(run)
    for index, ((imbalance, wait), runs) in enumerate(sorted(alike.items()), start=1):
        colour = COLOURS[(index - 1) % len(COLOURS)]
        marker = "o" if runs[0].admission == "pooled" else "s"
        axes.scatter([imbalance], [wait], marker=marker, s=45, color=colour, zorder=3)
        axes.annotate(str(index), (imbalance, wait), textcoords="offset points", xytext=(6, 4), fontsize=9)
        names = " = ".join(f"{run.policy}" for run in runs)
        axes.plot([], [], linestyle="none", marker=marker, color=colour, label=f"{index}  {names}")
    if all(imbalance > 0 for imbalance, _ in alike):
        axes.set_xscale("log")
    elif any(imbalance > 0 for imbalance, _ in alike):
        axes.set_xscale("symlog", linthresh=100)
    axes.set_yscale("symlog", linthresh=1)
    axes.margins(0.12)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("mean imbalance (tokens)")
    axes.set_ylabel("longest wait (steps)")
    legend_below(axes, title="round: pooled, square: immediate")
