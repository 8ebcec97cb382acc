"""Picture: what balance costs in waiting. A rule that balances by never admitting giants shows it here."""

from __future__ import annotations

from matplotlib.axes import Axes

from lbopt.report.figures import COLOURS
from lbopt.studies.gap import GapOutcome


def draw_waiting_trade(outcome: GapOutcome, axes: Axes) -> None:
    """Draw the longest wait against the mean imbalance of each long run of the first seed."""
    first = outcome.config.seed
    runs = sorted((r for r in outcome.long_runs if r.seed == first), key=lambda r: r.metrics.imbalance_tokens)
    for index, run in enumerate(runs):
        x, y = run.metrics.imbalance_tokens, run.metrics.waiting_max_steps + 1
        marker = "o" if run.admission == "pooled" else "s"
        axes.scatter([x], [y], marker=marker, s=45, color=COLOURS[index % len(COLOURS)], zorder=3)
        axes.annotate(f"{index + 1}", (x, y), textcoords="offset points", xytext=(6, 4), fontsize=9)
        axes.plot(
            [],
            [],
            linestyle="none",
            marker=marker,
            color=COLOURS[index % len(COLOURS)],
            label=f"{index + 1}  {run.policy}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("mean imbalance (tokens)")
    axes.set_ylabel("longest wait + 1 (steps)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, title="● pooled  ■ immediate")
