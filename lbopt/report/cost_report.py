"""How a cost study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.cost_tables import cost_csv, cost_tables, lead, sensitivities_csv
from lbopt.report.study_report import StudyReport
from lbopt.studies.cost import CostOutcome


def cost_contents(outcome: CostOutcome, made: Made) -> Contents:
    """Return cost.csv, sensitivities.csv, the pictures and the page."""
    from lbopt.report.cost_page import cost_pictures, render_cost_page  # pictures are drawn for a folder alone

    pictures = cost_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    return Contents(
        tables={"cost": cost_csv(outcome), "sensitivities": sensitivities_csv(outcome) or None},
        others={**files, "report.html": render_cost_page(outcome, pictures, made.how, made.command)},
    )


REPORT = StudyReport(
    tables=cost_tables,
    contents=cost_contents,
    heading=lambda outcome: [outcome.source],
    lead=lead,
    written="bill",
    page="report.html",
)
