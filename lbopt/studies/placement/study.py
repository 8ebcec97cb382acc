"""`run_placement`: every world at every number of ranks, through a store if there is one."""

from __future__ import annotations

from lbopt.studies.placement.config import PlacementConfig
from lbopt.studies.placement.outcome import PlacementOutcome
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Study


@of_tasks("worlds and ranks")
def run_placement(config: PlacementConfig, run: RunTasks) -> PlacementOutcome:
    """Run the study; Ctrl-C keeps the worlds that have ended."""
    tasks = {cell: config.task(*cell) for cell in config.cells()}
    stored = run(tasks.values())
    outcome = PlacementOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for cell, task in tasks.items():
        if task.key in stored.answers:
            outcome.add(*cell, stored.answers[task.key])
    for R in config.ranks:
        rows = [one for one in outcome.layers if one.R == R]
        open_rows = [one for one in rows if not one.proved]
        if open_rows:
            outcome.notes.append(
                f"not proved in time at R = {R}: {len(open_rows)} of {len(rows)} layers; the placements found are at "
                f"most {max(one.excess for one in open_rows):.2g} above the least"
            )
    return outcome


HELP = """Place the experts of random layers on ranks, greedily and exactly, and compare.

With --out, writes placement.csv, gaps.png, gaps.svg and run.json.

Example: `lbopt study placement -R 8 -R 16 --worlds 2 --out my-placements`
"""

STUDY = Study(name="placement", config=PlacementConfig, help=HELP, run=run_placement)
