"""How a gap study is shown: tables, frozen states, pictures, and a page that needs nothing else."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lbopt.report.contents import Made
from lbopt.report.gap_distribution import draw_gap_distribution
from lbopt.report.gap_page import gap_pictures, lead, render_gap_page, tables_in_order
from lbopt.report.gap_tables import comparison_csv, gap_csv, long_run_csv
from lbopt.report.page import files_of
from lbopt.report.study_report import StudyReport
from lbopt.studies.gap import GapOutcome, SolvedState
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.study import baseline_of


def step_record(solved: SolvedState) -> dict[str, Any]:
    """Return one line of steps.jsonl: the frozen state, its optimum, and every policy's value."""
    return solved.state.to_dict() | {
        "standing": solved.standing,
        "result": solved.result.to_dict(),
        "decisions": {name: decision.objective for name, decision in solved.decisions.items()},
    }


def gap_files(outcome: GapOutcome, made: Made) -> dict[str, Any]:
    """Return the pictures and report.html."""
    pictures = gap_pictures(outcome)
    return {**files_of(pictures), "report.html": render_gap_page(outcome, pictures, made.how, str(made.folder))}


def gaps(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and behaviour: one-step gaps to the optimum, smallest mean gap first."""
    frame = pd.DataFrame(gap_csv(outcome))
    return frame.sort_values(["behaviour", "gap_mean_tokens"], ignore_index=True) if len(frame) else frame


def difference_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return a row per policy and metric of the long runs: its mean, and its difference to the baseline."""
    return comparison_csv(compare(outcome.long_runs, baseline_of(outcome.config)))


REPORT = StudyReport(
    tables=tables_in_order,
    csv={"gap": gap_csv, "long_runs": long_run_csv, "differences": difference_csv},
    records={"steps": lambda outcome: map(step_record, outcome.solved)},
    others=gap_files,
    frames={"gap": gaps},
    draw=draw_gap_distribution,
    lead=lambda outcome: [lead(outcome)],
    written="report",
    page="report.html",
    digests=True,
)
