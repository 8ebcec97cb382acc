"""`run_staggered`: every part of the chosen items with every seed, through a store if there is one."""

from __future__ import annotations

import time
from pathlib import Path

from lbopt.studies.progress import Progress
from lbopt.studies.running import run_stored
from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.outcome import StaggeredOutcome
from lbopt.studies.staggered.plan import ITEMS
from lbopt.studies.staggered.rows import Rows
from lbopt.studies.study import Study


def run_staggered(
    config: StaggeredConfig,
    progress: Progress | None = None,
    *,
    store: Path | None = None,
    engine: str = "serial",
    collect_only: bool = False,
) -> StaggeredOutcome:
    """Run the study; Ctrl-C keeps what has ended.

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
    tasks = {item: config.tasks(item) for item in config.items}
    stored = run_stored(
        [task for of_item in tasks.values() for task in of_item],
        store=store,
        engine=engine,
        collect_only=collect_only,
        progress=progress,
        what="staggering",
    )
    stored.raise_refusals()
    outcome = StaggeredOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for item, of_item in tasks.items():
        for task in of_item:
            if task.key in stored.answers and task.seed is not None:
                outcome.rows.setdefault(item, {}).setdefault(task.seed, Rows()).add(stored.answers[task.key])
    outcome.seconds = time.perf_counter() - begin
    return outcome


HELP = """Compare what SBS printed of staggered prefill with simulated instances, with each of four immediate baselines.

With --out, writes claims.csv, a CSV an item, pictures (png, svg) and run.json. Takes about 14 minutes a
seed on one core, half of it for item needs: an hour in full with `--engine joblib:jobs=2`, and half a
minute with `law load fleet limit split --seeds 2 --requests 1000 --waits 20000`.

Example: `lbopt study staggered load limit --place short-3k --seeds 3 --requests 2000 --out my-staggered`
"""

STUDY = Study(
    name="staggered",
    format="lbopt-staggered",
    config=StaggeredConfig,
    help=HELP,
    run=run_staggered,
    tables=("claims", *ITEMS),
    figures=("waits", "load", "fleet", "limit", "device"),
    tasks=True,
    facts=lambda outcome: {"seeds": {item: len(by_seed) for item, by_seed in outcome.rows.items()}},
    has_results=lambda outcome: bool(outcome.rows),
)
