"""Picture: time of each solver over that of the reference, one row a group and solver, a mark an instance."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from lbopt.report.figures import COLOURS
from lbopt.report.race_numbers import ratio_bracket
from lbopt.studies.race import RaceOutcome


def ratio_rows(outcome: RaceOutcome) -> list[tuple[str, str]]:
    """Return (group, solver) of each row that has a ratio to show."""
    return [(r.group, r.solver) for r in outcome.ratio_summaries() if r.median is not None]


def draw_ratios(outcome: RaceOutcome, axes: Axes) -> None:
    """Draw dots where both were closed, triangles towards where the ratio is known to lie where one was not."""
    rows = ratio_rows(outcome)
    medians = {(r.group, r.solver): r.median for r in outcome.ratio_summaries()}
    solvers = [solver for solver in outcome.config.solvers if solver != outcome.config.base]
    jitter = np.random.default_rng(0)
    ends = []
    for row, (group, solver) in enumerate(rows):
        place = len(rows) - 1 - row
        colour = COLOURS[1 + solvers.index(solver) % (len(COLOURS) - 1)]
        for one in outcome.ratios_to_base(solver, group):
            marker = "o" if one.known else ">" if math.isinf(one.high) else "<"
            value = one.low if one.low > 0 else one.high
            height = place + jitter.uniform(-0.2, 0.2)
            axes.plot([value], [height], marker=marker, markersize=4, alpha=0.45, color=colour, markeredgewidth=0)
            ends.append(value)
        median = medians[group, solver]
        assert median is not None
        value = median.low if median.low > 0 else median.high
        if math.isfinite(value) and value > 0:
            axes.plot([value] * 2, [place - 0.34, place + 0.34], color="#000000", linewidth=2)
            ends.append(value)
        axes.annotate(
            ratio_bracket(median),
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.axvline(1.0, color="#57606a", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(rows)), [f"{group}  {solver}" for group, solver in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xscale("log")
    if ends:
        axes.set_xlim(min(0.7, 0.7 * min(ends)), max(1.5, 1.5 * max(ends)))
    axes.set_xlabel(f"time / time of {outcome.config.base}  (▶ at least this; bar: median)")
