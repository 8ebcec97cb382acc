"""How one simulation is shown."""

from __future__ import annotations

from lbopt.report.run_table import run_table
from lbopt.report.study_report import StudyReport

REPORT = StudyReport(
    tables=lambda outcome: [run_table(outcome.run, outcome.metrics)],
    csv={
        "requests": lambda outcome: outcome.run.request_table(),
        "steps": lambda outcome: outcome.run.step_table(),
        "decisions": lambda outcome: outcome.run.decision_table() if outcome.run.tally else None,
    },
    written="tables",
)
