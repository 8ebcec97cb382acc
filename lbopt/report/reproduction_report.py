"""How the reproductions are shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.reproduction_figure import dilution_figure
from lbopt.report.reproduction_tables import reproduction_csv, reproduction_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.reproduction import ReproductionOutcome


def reproduction_contents(outcome: ReproductionOutcome, _made: Made) -> Contents:
    """Return reproduction.csv, and the picture of dilution where that item was run."""
    return Contents(tables={"reproduction": reproduction_csv(outcome)}, figures={"dilution": dilution_figure(outcome)})


REPORT = StudyReport(tables=reproduction_tables, contents=reproduction_contents, written="table")
