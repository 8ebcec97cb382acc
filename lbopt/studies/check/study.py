"""`run_check`: measures what a store does not hold yet, and judges."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lbopt.studies.check.config import CheckConfig
from lbopt.studies.check.outcome import CheckOutcome, ClaimOutcome
from lbopt.studies.progress import Progress
from lbopt.studies.running import run_stored
from lbopt.studies.study import Study
from lbopt.theory.finding import Finding


def run_check(
    config: CheckConfig,
    progress: Progress | None = None,
    *,
    store: Path | None = None,
    engine: str = "serial",
    collect_only: bool = False,
) -> CheckOutcome:
    """Measure all regimes of all claims. Ctrl-C keeps what has ended; the rest is missing in the outcome.

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
    tasks = [config.tasks(chosen) for chosen in config.chosen]
    stored = run_stored(
        [task for each in tasks for task in each],
        store=store,
        engine=engine,
        collect_only=collect_only,
        progress=progress,
        what="checking",
    )
    stored.raise_refusals()
    outcome = CheckOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for chosen, each in zip(config.chosen, tasks, strict=True):
        answers = [stored.answers[task.key] for task in each if task.key in stored.answers]
        findings = tuple(Finding.from_dict(one) for answer in answers for one in answer)
        outcome.claims.append(ClaimOutcome(chosen, findings, len(each) - len(answers)))
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _facts(outcome: CheckOutcome) -> dict[str, Any]:
    refuting = outcome.refuting.items()
    return {
        "verdicts": {one.claim.name: one.verdict.value for one in outcome.claims},
        "counterexamples": {
            name: {"says": found["says"], "assignment": found.get("assignment")} for name, found in refuting
        },
    }


STUDY = Study(
    name="check",
    format="lbopt-check",
    config=CheckConfig,
    run=run_check,
    tables=("findings",),
    tasks=True,
    facts=_facts,
    account=("interrupted", "seconds"),
    holds=lambda outcome: all(one.as_expected for one in outcome.claims),
)
