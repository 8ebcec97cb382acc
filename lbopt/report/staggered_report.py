"""How a staggering study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.staggered_figures import staggered_figures
from lbopt.report.staggered_rows import item_rows, question_rows
from lbopt.report.staggered_tables import staggered_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.staggered import StaggeredOutcome


def staggered_contents(outcome: StaggeredOutcome, _made: Made) -> Contents:
    """Return claims.csv, a CSV an item, and the pictures."""
    rows = {"claims": question_rows(outcome)} | {item: item_rows(outcome, item) for item in outcome.rows}
    return Contents(
        # of some items nothing is printed, and a baseline may keep no limit: such a file is not written
        tables={name: one or None for name, one in rows.items()},
        figures=staggered_figures(outcome),
    )


REPORT = StudyReport(tables=staggered_tables, contents=staggered_contents)
