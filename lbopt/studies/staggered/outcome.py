"""What a staggering study found: rows by item and seed, and what is printed beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.display import Displayed
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.question import Figure, Question
from lbopt.studies.staggered.questions import questions
from lbopt.studies.staggered.rows import Averaged, Rows, averaged
from lbopt.studies.verdict import Judged


@dataclass(slots=True, repr=False)
class StaggeredOutcome(Displayed):
    """Everything that has ended.

    Parameters
    ----------
    rows
        By item and seed.
    """

    config: StaggeredConfig
    rows: dict[str, dict[int, Rows]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<StaggeredOutcome {len(self.rows)} items: {', '.join(self.rows)}>"

    def averaged(self, item: str) -> list[Averaged]:
        """Return the rows of an item over seeds."""
        return averaged(self.rows.get(item, {}).values())

    def mean(self, item: str, figure: Figure) -> MeanOverSeeds | None:
        """Return a value of the rows of a seed, over the seeds that have one; None where none has."""
        told = self._told(item, figure)
        return over_seeds(told) if told else None

    def judged(self) -> list[Judged[Question]]:
        """Return every printed statement that the runs can be held against."""
        answers = (
            (question, self._told(question.item, question.figure)) for question in questions(self.config.sending)
        )
        return [Judged(question, values) for question, values in answers if values]

    def _told(self, item: str, figure: Figure) -> tuple[float, ...]:
        told = (figure(rows) for rows in self.rows.get(item, {}).values())
        return tuple(value for value in told if value is not None)
