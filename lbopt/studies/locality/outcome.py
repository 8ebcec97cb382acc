"""What a locality study found: the answer of every world, the printed statements beside it, and the sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.display import Displayed
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.locality.at_laws import AtLaw, at_laws
from lbopt.studies.locality.config import LocalityConfig
from lbopt.studies.locality.constants import ITEM, ConstantBand, bands_of
from lbopt.studies.locality.plan import PlannedRun
from lbopt.studies.locality.question import Answer, Question, change
from lbopt.studies.locality.questions import questions
from lbopt.studies.verdict import Judged


@dataclass(slots=True, repr=False)
class LocalityOutcome(Displayed):
    """All worlds that have ended.

    Parameters
    ----------
    answers
        By workload, one a world, as `cell.measure` returns them.
    """

    config: LocalityConfig
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<LocalityOutcome worlds: {', '.join(f'{len(one)} of {name}' for name, one in self.answers.items())}>"

    def judged(self) -> list[Judged[Question]]:
        """Return every printed statement that the chosen items and workloads can be held against."""
        found = []
        for question in questions():
            if question.item not in self.config.items:
                continue
            values = [question.figure(answer, self.config.rates) for answer in self.answers.get(question.workload, [])]
            told = tuple(value for value in values if value is not None)
            if told:
                found.append(Judged(question, told))
        return found

    def constant_bands(self) -> list[ConstantBand]:
        """Return the statements that were judged over the ranges of the assumed constants."""
        if ITEM not in self.config.items:
            return []
        return bands_of(questions(), self.answers, self.config.rates)

    def at_laws(self) -> list[AtLaw]:
        """Return these statements under the step times that were given."""
        return at_laws(questions(), self.answers, self.config.rates, self.config.laws)

    def mean(self, workload: str, run: PlannedRun, of: str) -> MeanOverSeeds | None:
        """Return `of` of a run over worlds: p50, p99, wait (s), experts, running, busiest_over_mean."""
        answers = self.answers.get(workload, [])
        values = [answer["runs"].get(run.key, {}).get(of) for answer in answers]  # answers of 0.1.0 have no "wait"
        return over_seeds(values) if values and None not in values else None

    def change(self, workload: str, run: PlannedRun, of: str, base: str = "round-robin") -> MeanOverSeeds | None:
        """Return by how many percent a run's `of` exceeds that of another rule in the same world, over worlds.

        Parameters
        ----------
        workload
            Name of the workload.
        run
            The run.
        of
            The quantity.
        base
            The rule that it is compared with.
        """
        values = [change(answer, run, of, base) for answer in self.answers.get(workload, [])]
        told = [value for value in values if value is not None]
        return over_seeds(told) if told else None

    def signature(self, workload: str, *path: str) -> MeanOverSeeds | None:
        """Return a number of the signatures over worlds, by its path in the answer, such as "rho", "count"."""
        values = []
        for answer in self.answers.get(workload, []):
            value = answer["signatures"]
            for name in path:
                value = None if value is None else value.get(name)
            if value is not None:
                values.append(float(value))
        return over_seeds(values) if values else None
