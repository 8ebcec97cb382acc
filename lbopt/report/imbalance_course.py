"""Picture: the imbalance of each policy's long run over time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lbopt.report.figures import line_style
from lbopt.studies.gap import GapOutcome


def draw_imbalance_course(outcome: GapOutcome, axes: Axes) -> None:
    """Draw one line per policy, first seed, averaged over stretches of steps."""
    courses = [run for run in outcome.long_runs if run.imbalance_course is not None]
    courses.sort(key=lambda run: -run.metrics.imbalance_tokens)
    for index, run in enumerate(courses):
        course = run.imbalance_course
        assert course is not None
        window = run.metrics.last_step - run.metrics.first_step + 1
        steps = run.metrics.first_step + (np.arange(course.size) + 0.5) * window / course.size
        axes.plot(steps, course, label=run.policy, linewidth=1.2, **line_style(index))
    axes.set_yscale("log")
    axes.set_xlabel("decode step")
    axes.set_ylabel("imbalance (tokens)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, title="worst first")
