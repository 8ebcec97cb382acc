"""How a cost study is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from lbopt.report.contents import Made
from lbopt.report.cost_tables import cost_csv, cost_tables, lead, sensitivities_csv
from lbopt.report.study_report import StudyReport
from lbopt.studies.cost import CostOutcome


def cost_files(outcome: CostOutcome, made: Made) -> dict[str, Any]:
    """Return the pictures and the page."""
    from lbopt.report.cost_page import cost_pictures, render_cost_page  # pictures are drawn for a folder alone

    pictures = cost_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    return {**files, "report.html": render_cost_page(outcome, pictures, made.how, made.command)}


def draw_cost(outcome: CostOutcome, axes: Axes) -> None:
    """Draw throughput against imbalance."""
    from lbopt.report import cost_figure

    cost_figure.draw_cost(outcome, axes)


REPORT = StudyReport(
    tables=cost_tables,
    csv={"cost": cost_csv, "sensitivities": sensitivities_csv},
    others=cost_files,
    draw=draw_cost,
    heading=lambda outcome: [outcome.source],
    lead=lead,
    written="bill",
    page="report.html",
)
