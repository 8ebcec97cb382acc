"""How a placement study is shown."""

from __future__ import annotations

from lbopt.report.placement_figure import draw_placement_gaps, gap_figure
from lbopt.report.placement_tables import placement_csv, placement_tables
from lbopt.report.study_report import StudyReport

REPORT = StudyReport(
    tables=placement_tables,
    csv={"placement": placement_csv},
    figures=lambda outcome: {"gaps": gap_figure(outcome)},
    draw=draw_placement_gaps,
    written="tables and picture",
)
