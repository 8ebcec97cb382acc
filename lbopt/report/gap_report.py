"""How a gap study is shown: tables, frozen states, pictures, and a page that needs nothing else."""

from __future__ import annotations

from typing import Any

from lbopt.report.contents import Contents, Made
from lbopt.report.gap_page import gap_pictures, lead, render_gap_page, tables_in_order
from lbopt.report.gap_tables import comparison_csv, gap_csv, long_run_csv
from lbopt.report.study_report import StudyReport
from lbopt.studies.gap import GapOutcome, SolvedState
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.study import baseline_of


def gap_contents(outcome: GapOutcome, made: Made) -> Contents:
    """Return gap.csv, long_runs.csv, differences.csv, steps.jsonl, the pictures and report.html."""
    runs = outcome.long_runs
    pictures = gap_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    page = render_gap_page(outcome, pictures, made.how, str(made.folder))
    return Contents(
        tables={
            "gap": gap_csv(outcome),
            "long_runs": long_run_csv(outcome) if runs else None,
            "differences": comparison_csv(compare(runs, baseline_of(outcome.config))) if runs else None,
        },
        records={"steps": map(step_record, outcome.solved)},
        others=files | {"report.html": page},
    )


def step_record(solved: SolvedState) -> dict[str, Any]:
    """Return one line of steps.jsonl: the frozen state, its optimum, and every policy's value."""
    return solved.state.to_dict() | {
        "standing": solved.standing,
        "result": solved.result.to_dict(),
        "decisions": {name: decision.objective for name, decision in solved.decisions.items()},
    }


REPORT = StudyReport(
    tables=tables_in_order,
    contents=gap_contents,
    lead=lambda outcome: [lead(outcome)],
    written="report",
    page="report.html",
    digests=True,
)
