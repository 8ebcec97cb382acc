"""Picture: the imbalance of each policy's long run over time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lbopt.report.figures import legend_below, line_style
from lbopt.studies.gap import GapOutcome, LongRun


def draw_imbalance_course(outcome: GapOutcome, axes: Axes) -> None:
    """Draw one line per policy, first seed, averaged over stretches of steps; equal runs share a line."""
    alike: dict[bytes, list[LongRun]] = {}
    for run in outcome.long_runs:
        if run.imbalance_course is not None:
            alike.setdefault(run.imbalance_course.tobytes(), []).append(run)
    groups = sorted(alike.values(), key=lambda runs: -runs[0].metrics.imbalance_tokens)
    for index, runs in enumerate(groups):
        course, metrics = runs[0].imbalance_course, runs[0].metrics
        assert course is not None
        window = metrics.last_step - metrics.first_step + 1
        steps = metrics.first_step + (np.arange(course.size) + 0.5) * window / course.size
        label = " = ".join(run.policy for run in runs)
        axes.plot(steps, course, label=label, linewidth=1.2, **line_style(index))
    if any(runs[0].metrics.imbalance_tokens > 0 for runs in groups):  # a single worker never waits
        axes.set_yscale("log")
    axes.set_xlabel("decode step")
    axes.set_ylabel("imbalance (tokens)")
    legend_below(axes, title="worst first")
