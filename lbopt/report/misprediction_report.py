"""How a misprediction study is shown."""

from __future__ import annotations

from matplotlib.axes import Axes

from lbopt.report.gap_report import step_record
from lbopt.report.misprediction_curves import draw_by_strength, misprediction_figure
from lbopt.report.misprediction_tables import (
    lead,
    misprediction_csv,
    misprediction_long_run_csv,
    misprediction_tables,
)
from lbopt.report.study_report import StudyReport
from lbopt.studies.misprediction import MispredictionOutcome


def draw_forecasts(outcome: MispredictionOutcome, axes: Axes) -> None:
    """Draw the mean gap of the first rule against the strength of the error of its forecasts."""
    rule = outcome.config.rules[0]
    costs = [cost for cost in outcome.costs() if cost.case.rule is None or cost.case.rule.name == rule.name]
    draw_by_strength(costs, axes=axes, long_run=False)
    axes.set_xlabel("strength of the error")
    axes.set_ylabel("mean gap over the window (tokens)")
    axes.set_title(rule.name, fontsize=10, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


REPORT = StudyReport(
    tables=misprediction_tables,
    csv={"misprediction": misprediction_csv, "long_runs": misprediction_long_run_csv},
    records={"steps": lambda outcome: map(step_record, outcome.solved)},
    figures=lambda outcome: {"misprediction": misprediction_figure(outcome)},
    draw=draw_forecasts,
    lead=lead,
    written="tables and picture",
)
