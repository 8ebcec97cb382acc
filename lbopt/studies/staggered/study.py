"""`run_staggered`: every part of the chosen items with every seed, through a store if there is one."""

from __future__ import annotations

from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.outcome import StaggeredOutcome
from lbopt.studies.staggered.rows import Rows
from lbopt.studies.study import Study


@of_tasks("staggering")
def run_staggered(config: StaggeredConfig, run: RunTasks) -> StaggeredOutcome:
    """Run the study; Ctrl-C keeps what has ended."""
    tasks = {item: config.tasks(item) for item in config.items}
    stored = run(task for of_item in tasks.values() for task in of_item)
    outcome = StaggeredOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for item, of_item in tasks.items():
        for task in of_item:
            if task.key in stored.answers and task.seed is not None:
                outcome.rows.setdefault(item, {}).setdefault(task.seed, Rows()).add(stored.answers[task.key])
    return outcome


HELP = """Compare what SBS printed of staggered prefill with simulated instances, with each of four immediate baselines.

With --out, writes claims.csv, a CSV an item, pictures (png, svg) and run.json. Takes about 14 minutes a
seed on one core, half of it for item needs: an hour in full with `--engine joblib:jobs=2`, and half a
minute with `law load fleet limit split --seeds 2 --requests 1000 --waits 20000`.

Example: `lbopt study staggered load limit --place short-3k --seeds 3 --requests 2000 --out my-staggered`
"""

STUDY = Study(
    name="staggered",
    config=StaggeredConfig,
    help=HELP,
    run=run_staggered,
    facts=lambda outcome: {"seeds": {item: len(by_seed) for item, by_seed in outcome.rows.items()}},
)
