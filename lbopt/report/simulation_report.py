"""How one simulation is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.run_table import run_table
from lbopt.report.study_report import StudyReport
from lbopt.studies.simulation import SimulationOutcome


def simulation_contents(outcome: SimulationOutcome, _made: Made) -> Contents:
    """Return requests.csv and steps.csv, and decisions.csv where decisions were solved."""
    run = outcome.run
    return Contents(
        tables={
            "requests": run.request_table(),
            "steps": run.step_table(),
            "decisions": run.decision_table() if run.tally else None,
        }
    )


REPORT = StudyReport(
    tables=lambda outcome: [run_table(outcome.run, outcome.metrics)], contents=simulation_contents, written="tables"
)
