"""How a locality study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.locality_figures import locality_figures
from lbopt.report.locality_rows import constant_rows, law_rows, question_rows, run_rows, signature_rows
from lbopt.report.locality_tables import locality_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.locality import LocalityOutcome


def locality_contents(outcome: LocalityOutcome, _made: Made) -> Contents:
    """Return claims.csv, runs.csv, signatures.csv, constants.csv, laws.csv and the pictures."""
    rows = {"claims": question_rows(outcome), "runs": run_rows(outcome), "signatures": signature_rows(outcome)}
    rows |= {"constants": constant_rows(outcome), "laws": law_rows(outcome)}
    return Contents(
        # nothing is printed of the barrier alone, and signatures are an item of their own: such a file is not written
        tables={name: one or None for name, one in rows.items()},
        figures=locality_figures(outcome),
    )


REPORT = StudyReport(tables=locality_tables, contents=locality_contents)
