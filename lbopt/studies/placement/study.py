"""`run_placement`: every world at every number of ranks, through a store if there is one."""

from __future__ import annotations

import time
from pathlib import Path

from lbopt.studies.placement.config import PlacementConfig
from lbopt.studies.placement.outcome import PlacementOutcome
from lbopt.studies.progress import Progress
from lbopt.studies.running import run_stored
from lbopt.studies.study import Study


def run_placement(
    config: PlacementConfig,
    progress: Progress | None = None,
    *,
    store: Path | None = None,
    engine: str = "serial",
    collect_only: bool = False,
) -> PlacementOutcome:
    """Run the study; Ctrl-C keeps the worlds that have ended.

    Parameters
    ----------
    config
        What is asked.
    progress
        Shows progress; None shows nothing.
    store
        File that keeps the answers of tasks; None keeps none after the run.
    engine
        Where tasks run, such as "joblib:jobs=2".
    collect_only
        Whether to run nothing and to read what the store holds.
    """
    begin = time.perf_counter()
    tasks = {cell: config.task(*cell) for cell in config.cells()}
    stored = run_stored(
        tasks.values(),
        store=store,
        engine=engine,
        collect_only=collect_only,
        progress=progress,
        what="worlds and ranks",
    )
    stored.raise_refusals()
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
    outcome.seconds = time.perf_counter() - begin
    return outcome


HELP = """Place the experts of random layers on ranks, greedily and exactly, and compare.

With --out, writes placement.csv, gaps.png, gaps.svg and run.json.

Example: `lbopt study placement -R 8 -R 16 --worlds 2 --out my-placements`
"""

STUDY = Study(
    name="placement",
    format="lbopt-placement",
    config=PlacementConfig,
    help=HELP,
    run=run_placement,
    tables=("placement",),
    figures=("gaps",),
    tasks=True,
    has_results=lambda outcome: bool(outcome.layers),
)
