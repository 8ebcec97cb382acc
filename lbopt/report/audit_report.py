"""How an audit is shown."""

from __future__ import annotations

from typing import Any

from lbopt.report.audit_figures import draw_rules
from lbopt.report.audit_page import audit_pictures, headline, render_audit_page
from lbopt.report.audit_tables import audit_tables, rule_rows
from lbopt.report.contents import Made
from lbopt.report.page import files_of
from lbopt.report.study_report import StudyReport
from lbopt.studies.audit import AuditOutcome


def audit_files(outcome: AuditOutcome, made: Made) -> dict[str, Any]:
    """Return report.html, audit.json and the pictures."""
    pictures = audit_pictures(outcome)
    page = render_audit_page(outcome, pictures, made.how, made.command)
    return {"audit.json": outcome.to_dict(), **files_of(pictures), "report.html": page}


def lead(outcome: AuditOutcome) -> list[str]:
    """Return the recommendation, and what the model does not have."""
    return [
        *(f"{finding.sentence}." for finding in outcome.findings),
        f"{headline(outcome)}.",
        str(outcome.recommendation),
    ]


REPORT = StudyReport(
    tables=audit_tables,
    csv={"rules": rule_rows},
    others=audit_files,
    draw=draw_rules,
    lead=lead,
    written="page",
    page="report.html",
)
