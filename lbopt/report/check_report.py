"""How a check of the theory is shown."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.report.contents import Contents, Made
from lbopt.report.study_report import StudyReport
from lbopt.report.theory_page import render_theory_page, theory_markdown
from lbopt.report.theory_tables import finding_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckOutcome
from lbopt.table import Table

#: With at most so many claims the terminal also shows the findings of each.
_FEW_CLAIMS = 3


def check_tables(outcome: CheckOutcome) -> Sequence[Table]:
    """Return the findings of few claims, and the verdicts of all."""
    few = outcome.claims if len(outcome.claims) <= _FEW_CLAIMS else []
    return [*map(finding_table, few), verdict_table(outcome)]


def check_contents(outcome: CheckOutcome, made: Made) -> Contents:
    """Return findings.csv, report.html, theory.md, and a JSON file per counterexample."""
    return Contents(
        tables={"findings": _rows(outcome)},
        others={
            "report.html": render_theory_page(outcome, made.how, made.command),
            "theory.md": theory_markdown(outcome, made.how, made.command),
            **{name: found["problem"] for name, found in outcome.refuting.items()},
        },
    )


def _rows(outcome: CheckOutcome) -> list[dict[str, object]]:
    rows = []
    for one in outcome.claims:
        for finding in one.findings:
            row: dict[str, object] = {"claim": one.claim.name, **finding.to_dict()}
            del row["counterexample"]
            low, high = finding.interval(one.share) or (None, None)
            rows.append(
                row | {"low": low, "high": high, "p_value": finding.p_value(), "verdict": str(one.judged(finding))}
            )
    return rows


REPORT = StudyReport(
    tables=check_tables,
    contents=check_contents,
    lead=lambda outcome: [verdict_lead(outcome)],
    written="report",
    page="report.html",
)
