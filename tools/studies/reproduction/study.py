"""`run_reproduction`: every question of the chosen items, through a store if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Outcome, Study
from tools.studies.reproduction import balance_route, dilution, energy, kv_spread, scaling
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.question import Question, Row


@dataclass(slots=True, repr=False)
class ReproductionOutcome(Outcome):
    """All rows whose runs have ended."""

    config: ReproductionConfig
    rows: list[Row] = field(default_factory=list)

    def of(self, item: str) -> list[Row]:
        """Return the rows of one item."""
        return [row for row in self.rows if row.question.item == item]


QUESTIONS: dict[str, Callable[[ReproductionConfig], list[Question]]] = {
    "energy": energy.questions,
    "balance-route": balance_route.questions,
    "dilution": dilution.questions,
    "scaling": scaling.questions,
    "kv-spread": kv_spread.questions,
}


@of_tasks("reproductions")
def run_reproduction(config: ReproductionConfig, run: RunTasks) -> ReproductionOutcome:
    """Run the study; Ctrl-C keeps the rows whose runs have ended."""
    questions = [question for item in config.items for question in QUESTIONS[item](config)]
    stored = run([task for question in questions for task in question.tasks()])
    rows = [question.answer(stored.answers) for question in questions]
    outcome = ReproductionOutcome(
        config,
        rows=[row for row in rows if row is not None],
        notes=list(stored.notes),
        interrupted=stored.interrupted,
    )
    if "energy" in config.items and config.logs is None:
        outcome.notes.append("energy: BF-IO's own rows replay its authors' decision logs; name their folder by --logs")
    return outcome


HELP = """Compare published tables of routers with runs of the same rules: do they agree, and if not, why?

With --out, writes reproduction.csv, dilution.png, dilution.svg and run.json. Takes half a minute with
`-n 2000 --seeds 2`, and 5 to 10 minutes in full with `--engine joblib:jobs=2`.

Example: `python -m tools.studies study reproduction dilution scaling -n 2000 --seeds 2 --out my-reproduction`
"""

STUDY = Study(name="reproduction", config=ReproductionConfig, help=HELP, run=run_reproduction)
