"""`run_stale`: every rule on every fleet with every age of reports, through a store if there is one."""

from __future__ import annotations

from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.stale.config import StaleConfig
from lbopt.studies.stale.outcome import StaleOutcome, cell_of
from lbopt.studies.study import Study


@of_tasks("runs")
def run_stale(config: StaleConfig, run: RunTasks) -> StaleOutcome:
    """Run the study; Ctrl-C keeps the runs that have ended."""
    tasks = {cell: config.task(*cell) for cell in config.cells()}
    stored = run(tasks.values())
    outcome = StaleOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for (G, policy, period), task in tasks.items():
        if task.key in stored.answers:
            outcome.cells.append(cell_of(policy, G, period, stored.answers[task.key]))
    pooled = sorted({cell.policy for cell in outcome.cells if cell.admission == "pooled"})
    if config.sight == "blind" and pooled:
        outcome.notes.append(f"rules with a pool count what they send in any case: {', '.join(pooled)}")
    return outcome


HELP = """Run rules on a trace with reports of several ages, and put the law's floor beside what they leave.

With --out, writes stale.csv, a picture (png, svg) and run.json.

Example: `lbopt study stale azure-like --requests 3000 -G 8 --period 0.1 --period 1 --policy jsq-load --out my-ages`
"""

STUDY = Study(
    name="stale",
    format="lbopt-stale",
    config=StaleConfig,
    help=HELP,
    run=run_stale,
    tables=("stale",),
    figures=("ages",),
    tasks=True,
    has_results=lambda outcome: bool(outcome.cells),
)
