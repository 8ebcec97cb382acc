"""How a placement study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.placement_figure import gap_figure
from lbopt.report.placement_tables import placement_csv, placement_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.placement import PlacementOutcome


def placement_contents(outcome: PlacementOutcome, _made: Made) -> Contents:
    """Return placement.csv and the picture of gaps."""
    return Contents(tables={"placement": placement_csv(outcome)}, figures={"gaps": gap_figure(outcome)})


REPORT = StudyReport(tables=placement_tables, contents=placement_contents, written="tables and picture")
