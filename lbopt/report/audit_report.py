"""How an audit is shown."""

from __future__ import annotations

from lbopt.report.audit_page import audit_pictures, headline, render_audit_page
from lbopt.report.audit_tables import audit_tables, rule_rows
from lbopt.report.contents import Contents, Made
from lbopt.report.study_report import StudyReport
from lbopt.studies.audit import AuditOutcome


def audit_contents(outcome: AuditOutcome, made: Made) -> Contents:
    """Return report.html, audit.json, rules.csv and the pictures."""
    pictures = audit_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    page = render_audit_page(outcome, pictures, made.how, made.command)
    return Contents(
        tables={"rules": rule_rows(outcome) or None},
        others={"audit.json": outcome.to_dict(), **files, "report.html": page},
    )


def lead(outcome: AuditOutcome) -> list[str]:
    """Return the recommendation, and what the model does not have."""
    return [
        *(f"{finding.sentence}." for finding in outcome.findings),
        f"{headline(outcome)}.",
        str(outcome.recommendation),
    ]


REPORT = StudyReport(
    tables=audit_tables,
    contents=audit_contents,
    lead=lead,
    written="page",
    page="report.html",
)
