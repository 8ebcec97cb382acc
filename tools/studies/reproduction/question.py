"""A question of the reproduction study: a published number, what is run for it, and how ours is computed.

Every row of the study is one. The items (`energy.py`, `balance_route.py`, ...) only write questions down; running,
means over seeds and verdicts are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import lbopt
from lbopt.hardware.published import published_names, published_table
from lbopt.runner import Task
from lbopt.statistics import Interval, MeanOverSeeds, over_seeds
from lbopt.studies.printed import Printed, Tolerance, interval_of, printed_number, verdict

MEASURE = "tools.studies.reproduction.cell:measure"


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
    item, quantity
        What is asked.
    printed
        The published figure with its ends; `value` is the number.
    requests, fleet
        Whose requests, and on which machine.
    arrivals, dispatch
        Load, and when requests are bound to a worker.
    cells, seeds
        What is run, each with each of the seeds. Without cells the answer follows from print alone.
    figure
        From what the cells returned for one seed to our value.
    why
        From the answered row to why ours does not agree, where it does not; computed from its runs (`reasons`).
    exact
        Whether a run holds for itself: its requests are the published ones.
    """

    item: str
    quantity: str
    printed: Printed
    requests: str
    fleet: str
    arrivals: str
    dispatch: str
    cells: tuple[Measured, ...]
    seeds: tuple[int, ...]
    figure: Callable[..., float]
    why: Callable[[Row], str]
    exact: bool = False

    def tasks(self) -> list[Task]:
        """Return everything that has to be run."""
        return [cell.task(seed) for seed in self.seeds for cell in self.cells]

    def answer(self, answers: Mapping[str, Any]) -> Row | None:
        """Return the row, or None where a result is missing; `answers` are by the tasks' keys."""
        if any(task.key not in answers for task in self.tasks()):
            return None
        if not self.cells:
            return Row(self, (self.figure(),), ())
        of_cells = [[answers[cell.task(seed).key] for seed in self.seeds] for cell in self.cells]
        found = tuple(self.figure(*one) for one in zip(*of_cells, strict=True))
        return Row(self, found, tuple(_mean_of(one) for one in of_cells))


@dataclass(frozen=True, slots=True)
class Row:
    """A question with our values, one a seed, and the means over seeds of what each cell returned."""

    question: Question
    values: tuple[float, ...]
    means: tuple[Mapping[str, float], ...]

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over seeds with its 95 % Student interval."""
        return over_seeds(self.values)

    @property
    def one_run(self) -> Interval | None:
        """Where 95 % of single runs lie; None for one seed."""
        return interval_of(self.values, single_run=True)

    @property
    def verdict(self) -> str:
        """One of `lbopt.studies.printed.VERDICTS`."""
        return verdict(self._interval, self.question.printed)

    @property
    def why(self) -> str:
        """Why they do not agree; empty where they do."""
        if self._interval is None:
            return "one seed has no spread; give more --seeds"
        if self.verdict == "undecided":
            return "our interval holds an end of what counts as the same"
        return "" if self.verdict == "agrees" else self.question.why(self)

    @property
    def _interval(self) -> Interval | None:
        asked = self.question
        return interval_of(self.values, exact=asked.exact, single_run=asked.printed.single_run)


def _mean_of(answers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(answer[name] for answer in answers) / len(answers) for name in answers[0]}


def asked(
    *,
    published: float,
    source: str,
    tolerance: Tolerance,
    unit: str = "",
    nothing: float | None = 0.0,
    single_run: bool = False,
    **rest: Any,
) -> Question:
    """Return the question about a published number.

    Parameters
    ----------
    published, unit
        The number; `unit` is empty for ratios.
    source
        A shipped table, after which a group of it may stand; or a file of the source's authors.
    tolerance, nothing, single_run
        As in `lbopt.studies.printed.Printed`.
    """
    table = source.split()[0]
    place = published_table(table).pedigree.place if table in published_names() else source
    printed = printed_number(
        published, tolerance, source=source, place=place, unit=unit, nothing=nothing, single_run=single_run
    )
    return Question(printed=printed, **rest)


def published_number(table: str, column: str, **where: float | str) -> float:
    """Return a number of a published table, from the one row in which the named columns have the given values."""
    rows = [row for row in published_table(table).rows if all(row[name] == value for name, value in where.items())]
    (row,) = rows
    return float(row[column])
