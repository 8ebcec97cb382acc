"""A question to a published number: what is printed, what to run for it, and when the two agree.

Every row of the study is one. The items (`energy.py`, `balance_route.py`, ...) only write questions down; running,
means over seeds and verdicts are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import lbopt
from lbopt.hardware.published import published_table
from lbopt.runner import Task
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.reproduction.criterion import Criterion, one_run

MEASURE = "lbopt.studies.reproduction.cell:measure"


class Measured(Protocol):
    """Something that is run once a seed."""

    def task(self, seed: int) -> Task:
        """Return the task of one seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One rule on one fleet, as `cell.measure` runs it; `requests` are its options as pairs."""

    requests: tuple[tuple[str, Any], ...]
    content: str
    count: int
    G: int
    B: int
    policy: str
    load: float | None
    step_time: str

    def task(self, seed: int) -> Task:
        """Return the task of one seed; all rules get the same requests from a seed."""
        given = {name: getattr(self, name) for name in self.__slots__}
        return Task(MEASURE, given | {"requests": dict(self.requests), "version": lbopt.__version__}, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A row before it is answered.

    Parameters
    ----------
    item, quantity, unit
        What is asked; `unit` is empty for ratios.
    published, source
        The printed value and the table it is from.
    requests, fleet
        Whose requests, and on which machine.
    arrivals, dispatch
        Load, and when requests are bound to a worker.
    cells, seeds
        What is run, each with each of the seeds. Without cells the answer follows from print alone.
    figure
        From what the cells returned for one seed to our value.
    criterion, why
        When they agree, and why not where they do not.
    exact
        Whether a run holds for itself: its requests are the published ones.
    """

    item: str
    quantity: str
    unit: str
    published: float
    source: str
    requests: str
    fleet: str
    arrivals: str
    dispatch: str
    cells: tuple[Measured, ...]
    seeds: tuple[int, ...]
    figure: Callable[..., float]
    criterion: Criterion
    why: str
    exact: bool = False

    def tasks(self) -> list[Task]:
        """Return everything that has to be run."""
        return [cell.task(seed) for seed in self.seeds for cell in self.cells]

    def answer(self, answers: Mapping[str, Any]) -> Row | None:
        """Return the row, or None where a result is missing; `answers` are by the tasks' keys."""
        if any(task.key not in answers for task in self.tasks()):
            return None
        if not self.cells:
            return self._row([self.figure()])
        return self._row([self.figure(*(answers[cell.task(seed).key] for cell in self.cells)) for seed in self.seeds])

    def _row(self, ours: Sequence[float]) -> Row:
        return Row(self, tuple(ours), self.criterion.agrees(self.published, ours))


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its answer; `agrees` is None where one seed cannot tell."""

    question: Question
    values: tuple[float, ...]
    agrees: bool | None

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over seeds with its 95 % Student interval."""
        return over_seeds(self.values)

    @property
    def one_run(self) -> tuple[float, float] | None:
        """Where 95 % of single runs lie."""
        return one_run(self.values)

    @property
    def verdict(self) -> str:
        """One word."""
        return {True: "agree", False: "disagree", None: "undecided"}[self.agrees]

    @property
    def why(self) -> str:
        """Why they do not agree; empty where they do."""
        if self.agrees is None:
            return "one seed has no spread; give more --seeds"
        return "" if self.agrees else self.question.why


def printed(table: str, column: str, **where: float | str) -> float:
    """Return a number of a published table, from the one row in which the named columns have the given values."""
    rows = [row for row in published_table(table).rows if all(row[name] == value for name, value in where.items())]
    (row,) = rows
    return float(row[column])
