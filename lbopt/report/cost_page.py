"""The bill as a page that needs nothing else: what today's tokens cost with every router, and what that hangs on."""

from __future__ import annotations

from typing import Any

from lbopt.report.cost_figure import cost_figure
from lbopt.report.cost_tables import bill_table, cost_tables, lead
from lbopt.report.page import Picture, render_page
from lbopt.report.tornado_figure import tornado_figure
from lbopt.studies.cost import CostOutcome


def cost_pictures(outcome: CostOutcome) -> list[Picture]:
    """Return the tornado of the price, where it is known, and throughput against imbalance."""
    tornado = tornado_figure(outcome)
    caption = "A group of constants at its 5 and at its 95 % end, all others at their nominal values."
    pictures = [] if tornado is None else [Picture.of(tornado, "tornado", "What the price hangs on", caption)]
    caption = "Lines are laws, bands their 90 % intervals, stars the load points; grey marks are published."
    return [*pictures, Picture.of(cost_figure(outcome), "cost", "Throughput against imbalance", caption)]


def render_cost_page(outcome: CostOutcome, pictures: list[Picture], provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML, the bill first.

    Parameters
    ----------
    outcome
        What was priced.
    pictures
        Its pictures.
    provenance
        Versions, processor, time and command.
    command
        The command line.
    """
    bill = bill_table(outcome.devices, outcome) if outcome.devices else None
    return render_page(
        "cost_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        source=outcome.source,
        leads=lead(outcome),
        notes=outcome.notes,
        tables=[*([] if bill is None else [bill]), *(one for one in cost_tables(outcome) if one != bill)],
        figures=pictures,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )
