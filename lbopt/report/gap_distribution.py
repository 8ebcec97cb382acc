"""Picture: how the one-step gaps of each policy are distributed over the closed states."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lbopt.report.figures import COLOURS, legend_below
from lbopt.studies.gap import GapOutcome


def draw_gap_distribution(outcome: GapOutcome, axes: Axes) -> None:
    """Draw one row of dots per policy with median and mean; policies sorted by mean gap, best on top."""
    closed = [s for s in outcome.solved if s.standing != "open"]
    policies = list(dict.fromkeys(name for s in closed for name in s.decisions))
    gaps = {p: np.array([s.decisions[p].objective - s.best for s in closed if p in s.decisions]) for p in policies}
    order = sorted(policies, key=lambda p: -gaps[p].mean())
    jitter = np.random.default_rng(0)
    for row, policy in enumerate(order):
        values = gaps[policy]
        height = row + jitter.uniform(-0.22, 0.22, values.size)
        axes.scatter(values, height, s=10, alpha=0.5, color=COLOURS[0], linewidths=0)
        axes.plot([np.median(values)] * 2, [row - 0.36, row + 0.36], color=COLOURS[1], linewidth=2)
        axes.plot([values.mean()], [row], marker="D", color=COLOURS[6], markersize=5)
    axes.plot([], [], color=COLOURS[1], linewidth=2, label="median")
    axes.plot([], [], marker="D", color=COLOURS[6], linestyle="none", markersize=5, label="mean")
    axes.scatter([], [], s=9, color=COLOURS[0], label="one state")
    axes.set_yticks(range(len(order)), order)
    axes.set_xscale("symlog", linthresh=100)
    axes.set_xlim(left=-5)
    axes.margins(x=0.05)
    axes.set_xlabel("imbalance above the optimum\n(tokens, logarithmic above 100)")
    legend_below(axes, columns=3)
