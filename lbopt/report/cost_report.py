"""How a cost study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.cost_figure import cost_figure
from lbopt.report.cost_tables import cost_csv, cost_tables, lead, sensitivities_csv
from lbopt.report.study_report import StudyReport
from lbopt.report.tornado_figure import tornado_figure
from lbopt.studies.cost import CostOutcome


def cost_contents(outcome: CostOutcome, _made: Made) -> Contents:
    """Return cost.csv, sensitivities.csv and the pictures."""
    pictures = {"cost": cost_figure(outcome), "tornado": tornado_figure(outcome)}
    return Contents(
        tables={"cost": cost_csv(outcome), "sensitivities": sensitivities_csv(outcome) or None},
        figures={name: picture for name, picture in pictures.items() if picture is not None},
    )


REPORT = StudyReport(
    tables=cost_tables,
    contents=cost_contents,
    heading=lambda outcome: [outcome.source],
    lead=lead,
    written="tables and pictures",
)
