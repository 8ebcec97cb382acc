"""How the reproductions are shown."""

from __future__ import annotations

from lbopt.report.reproduction_figure import dilution_figure, draw_dilution
from lbopt.report.reproduction_tables import reproduction_csv, reproduction_tables
from lbopt.report.study_report import StudyReport

REPORT = StudyReport(
    tables=reproduction_tables,
    csv={"reproduction": reproduction_csv},
    figures=lambda outcome: {"dilution": dilution_figure(outcome)},
    draw=draw_dilution,
    written="table",
)
