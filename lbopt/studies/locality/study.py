"""`run_locality`: every world of the chosen workloads, through a store if there is one."""

from __future__ import annotations

from lbopt.studies.locality.config import LocalityConfig
from lbopt.studies.locality.outcome import LocalityOutcome
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Study


@of_tasks("worlds")
def run_locality(config: LocalityConfig, run: RunTasks) -> LocalityOutcome:
    """Run the study; Ctrl-C keeps the worlds that have ended."""
    tasks = {
        (workload, seed): config.task(workload, seed) for seed in config.all_seeds for workload in config.workloads
    }
    stored = run(tasks.values())
    outcome = LocalityOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for (workload, _), task in tasks.items():
        if task.key in stored.answers:
            outcome.answers.setdefault(workload, []).append(stored.answers[task.key])
    return outcome


HELP = """Compare what ELDR printed of routing by experts with a synthetic workload, with sweeps of its parts.

The first six items run where none is named. `constants` judges four statements over the plausible range of the two
constants that are assumed; `first-token`, `cache`, `models` and `large` are what can be answered beside the main
tables.

`--law` compares the routers under step times of your own, such as measured ones.

With --out, writes claims.csv, runs.csv, signatures.csv, constants.csv, laws.csv, pictures (png, svg) and run.json.
Takes about 11 s a world and workload: 4 minutes in full with `--engine joblib:jobs=2`, and half a minute with
`--seeds 2 --rates 60 --seconds 60`; `constants` takes about 14 s more a world and workload.

Example: `lbopt study locality band clusters --seeds 2 --rates 60 --seconds 60 --out my-locality`
"""

STUDY = Study(
    name="locality",
    config=LocalityConfig,
    help=HELP,
    run=run_locality,
    facts=lambda outcome: {"worlds": {workload: len(found) for workload, found in outcome.answers.items()}},
)
