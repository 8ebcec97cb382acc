"""`run_check`: measures what a store does not hold yet, and judges."""

from __future__ import annotations

from typing import Any

from lbopt.studies.check.config import CheckConfig
from lbopt.studies.check.outcome import CheckOutcome, ClaimOutcome
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Study
from lbopt.theory.finding import Finding


@of_tasks("checking")
def run_check(config: CheckConfig, run: RunTasks) -> CheckOutcome:
    """Measure all regimes of all claims. Ctrl-C keeps what has ended; the rest is missing in the outcome."""
    tasks = [config.tasks(chosen) for chosen in config.chosen]
    stored = run([task for each in tasks for task in each])
    outcome = CheckOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for chosen, each in zip(config.chosen, tasks, strict=True):
        answers = [stored.answers[task.key] for task in each if task.key in stored.answers]
        findings = tuple(Finding.from_dict(one) for answer in answers for one in answer)
        outcome.claims.append(ClaimOutcome(chosen, findings, len(each) - len(answers)))
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
    config=CheckConfig,
    run=run_check,
    facts=_facts,
    account=("interrupted", "seconds"),
    holds=lambda outcome: all(one.as_expected for one in outcome.claims),
)
