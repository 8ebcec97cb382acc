"""A study is a grid with columns: axes that vary, a measure of each cell, and columns that say what was measured.

How a study is written
----------------------
1. *Configuration.* A frozen dataclass with slots on `Grid` (or on `Configuration`, where nothing is a task). A field
   says all that is known of a parameter in its `Option`: help, spelling, `low` and `high`, `among`, `each`, `kept`.
   `check` is for what no single field shows. `to_dict`, `from_dict`, the options and their refusal follow.
2. *Axes.* ``axes = ("G", "workers"), ("policy", "policies")``: the names of the coordinates of a cell, each with
   the field or property that holds its values; the first varies slowest.
3. *Measure.* ``function = "lbopt.studies.NAME.cell:measure"``: takes the coordinates, what `given` adds, `version` and
   `seed` as plain keywords, and returns plain data. The path is part of the keys of stored rows: do not move it.
4. *Outcome.* A dataclass on `lbopt.studies.study.Outcome` with `add(answer, **cell)`, which keeps a row.
5. *Run.* A function under ``@of_tasks("what runs")`` that returns ``run_grid(config, run, NameOutcome)``; store,
   engine, clock, Ctrl-C and progress are there. A study without tasks works inside ``with outcome.clocked():``.
6. *Columns.* `lbopt.table.Column`, in `lbopt.report.NAME_report`: name, meaning, header, how it is shown. CSV, data
   frame and table follow (`records`, `table_of`), and folder and views from the report's `csv`, `figures`, `draw`.
7. A line in `lbopt.studies.registry.STUDIES` and in `lbopt.report.study_report.REPORTS`.

`lbopt.studies.stale` and `lbopt.studies.scaling` are examples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import lbopt
from lbopt.runner import Task
from lbopt.studies.configuration import Configuration
from lbopt.studies.running import RunTasks, Stored


class Row(SimpleNamespace):
    """A row of a study: coordinates and answer of a cell, as attributes. The columns of the study say what they are."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {name: value.to_dict() if isinstance(value, Row) else value for name, value in vars(self).items()}

    def but(self, **changes: Any) -> Self:
        """Return the row with other values."""
        return type(self)(**vars(self) | changes)


class Grid(Configuration):
    """A configuration whose tasks are the cells of a grid."""

    __slots__ = ()

    axes: ClassVar[tuple[tuple[str, str], ...]]
    function: ClassVar[str]

    def cells(self) -> Iterator[dict[str, Any]]:
        """Yield the coordinates of every cell, by name."""
        for cell in itertools.product(*(getattr(self, values) for _, values in self.axes)):
            yield dict(zip((name for name, _ in self.axes), cell, strict=True))

    def given(self, **cell: Any) -> dict[str, Any]:
        """Return the parameters of a cell's task beside its coordinates, or in place of them."""
        return {}

    def seed_of(self, **cell: Any) -> int:
        """Return the seed of a cell's task."""
        seed: int = cell.get("seed", getattr(self, "seed", 0))
        return seed

    def task(self, **cell: Any) -> Task:
        """Return the task of a cell."""
        given = cell | {"version": lbopt.__version__} | self.given(**cell)
        return Task(self.function, {name: given[name] for name in given if name != "seed"}, self.seed_of(**cell))


class _Adds(Protocol):
    def add(self, answer: Any, **cell: Any) -> None:
        """Keep the answer of a cell."""


Gathered = TypeVar("Gathered", bound=_Adds)


def run_grid(config: Grid, run: RunTasks, outcome: type[Gathered]) -> Gathered:
    """Run every cell, and return the outcome of the answers that there are."""
    cells = list(config.cells())
    tasks = [config.task(**cell) for cell in cells]
    stored = run(tasks)
    found = empty(outcome, config, stored)
    for cell, task in zip(cells, tasks, strict=True):
        if task.key in stored.answers:
            found.add(stored.answers[task.key], **cell)
    return found


def empty(outcome: type[Gathered], config: Any, stored: Stored) -> Gathered:
    """Return an outcome without rows, with what there is to say of the run."""
    made: Any = outcome
    found: Gathered = made(config, notes=list(stored.notes), interrupted=stored.interrupted)
    return found
