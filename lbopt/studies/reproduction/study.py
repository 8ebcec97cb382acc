"""`run_reproduction`: every question of the chosen items, through a store if there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lbopt.studies.progress import Progress
from lbopt.studies.reproduction import balance_route, dilution, energy, kv_spread, scaling
from lbopt.studies.reproduction.config import ReproductionConfig
from lbopt.studies.reproduction.outcome import ReproductionOutcome
from lbopt.studies.reproduction.question import Question
from lbopt.studies.running import run_stored
from lbopt.studies.study import Study

QUESTIONS: dict[str, Callable[[ReproductionConfig], list[Question]]] = {
    "energy": energy.questions,
    "balance-route": balance_route.questions,
    "dilution": dilution.questions,
    "scaling": scaling.questions,
    "kv-spread": kv_spread.questions,
}


def run_reproduction(
    config: ReproductionConfig,
    progress: Progress | None = None,
    *,
    store: Path | None = None,
    engine: str = "serial",
    collect_only: bool = False,
) -> ReproductionOutcome:
    """Run the study; Ctrl-C keeps the rows whose runs have ended.

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
    questions = [question for item in config.items for question in QUESTIONS[item](config)]
    stored = run_stored(
        [task for question in questions for task in question.tasks()],
        store=store,
        engine=engine,
        collect_only=collect_only,
        progress=progress,
        what="reproductions",
    )
    stored.raise_refusals()
    rows = [question.answer(stored.answers) for question in questions]
    outcome = ReproductionOutcome(
        config,
        rows=[row for row in rows if row is not None],
        notes=list(stored.notes),
        interrupted=stored.interrupted,
    )
    if "energy" in config.items and config.logs is None:
        outcome.notes.append("energy: BF-IO's own rows replay its authors' decision logs; name their folder by --logs")
    outcome.seconds = time.perf_counter() - begin
    return outcome


HELP = """Compare published tables of routers with runs of the same rules: do they agree, and if not, why?

With --out, writes reproduction.csv, dilution.png, dilution.svg and run.json. Takes half a minute with
`-n 2000 --seeds 2`, and 5 to 10 minutes in full with `--engine joblib:jobs=2`.

Example: `lbopt study reproduction dilution scaling -n 2000 --seeds 2 --out my-reproduction`
"""

STUDY = Study(
    name="reproduction",
    format="lbopt-reproduction",
    config=ReproductionConfig,
    help=HELP,
    run=run_reproduction,
    tables=("reproduction",),
    figures=("dilution",),
    tasks=True,
    has_results=lambda outcome: bool(outcome.rows),
)
