"""The page of an audit: one HTML file that needs nothing else and shows no request's id."""

from __future__ import annotations

from typing import Any

from lbopt.report.audit_figures import loads_figure, rules_figure
from lbopt.report.audit_tables import audit_tables
from lbopt.report.page import Picture, render_page
from lbopt.studies.audit import AuditOutcome


def audit_pictures(outcome: AuditOutcome) -> list[Picture]:
    """Draw every picture that the outcome has data for."""
    pictures = []
    figure = rules_figure(outcome)
    if figure is not None:
        caption = "Change of the mean time per token against the log, with 95 % intervals; left of the line is faster."
        pictures.append(Picture.of(figure, "rules", "What other rules would have done", caption))
    figure = loads_figure(outcome)
    if figure is not None:
        caption = "Each step takes as long as its heaviest worker needs; what lies between the lines waits for it."
        pictures.append(Picture.of(figure, "loads", "The fleet over the logged time", caption))
    return pictures


def render_audit_page(outcome: AuditOutcome, pictures: list[Picture], provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    outcome
        The audit.
    pictures
        Its pictures.
    provenance
        Versions, processor, time and command.
    command
        The command line.
    """
    return render_page(
        "audit_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        headline=headline(outcome),
        interrupted=outcome.interrupted,
        recommendation=str(outcome.recommendation),
        findings=[finding.sentence for finding in outcome.findings],
        notes=outcome.notes,
        tables=audit_tables(outcome),
        figures=pictures,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def headline(outcome: AuditOutcome) -> str:
    """Return the answer in one line."""
    verdict, best = outcome.recommendation.verdict, outcome.recommendation
    if verdict == "switch" and best.change is not None:
        return f"Switch to {best.rule}: {-best.change:.1%} less time per token".replace("%", " %")
    return "Stay with the present rule" if verdict == "stay" else "No recommendation"
