"""How a cost study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.cost_figure import cost_figure
from lbopt.report.cost_tables import cost_csv, cost_tables, lead
from lbopt.report.study_report import StudyReport
from lbopt.studies.cost import CostOutcome


def cost_contents(outcome: CostOutcome, _made: Made) -> Contents:
    """Return cost.csv and the picture."""
    return Contents(tables={"cost": cost_csv(outcome)}, figures={"cost": cost_figure(outcome)})


REPORT = StudyReport(
    tables=cost_tables,
    contents=cost_contents,
    heading=lambda outcome: [outcome.source],
    lead=lead,
    written="table and picture",
)
