"""How a misprediction study is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.gap_report import step_record
from lbopt.report.misprediction_curves import misprediction_figure
from lbopt.report.misprediction_tables import (
    lead,
    misprediction_csv,
    misprediction_long_run_csv,
    misprediction_tables,
)
from lbopt.report.study_report import StudyReport
from lbopt.studies.misprediction import MispredictionOutcome


def misprediction_contents(outcome: MispredictionOutcome, _made: Made) -> Contents:
    """Return misprediction.csv, long_runs.csv, steps.jsonl and the picture."""
    return Contents(
        tables={
            "misprediction": misprediction_csv(outcome),
            "long_runs": misprediction_long_run_csv(outcome) if outcome.long_runs else None,
        },
        records={"steps": map(step_record, outcome.solved)},
        figures={"misprediction": misprediction_figure(outcome)},
    )


REPORT = StudyReport(
    tables=misprediction_tables, contents=misprediction_contents, lead=lead, written="tables and picture"
)
