"""Published tables of routers and engines, and measured decode steps, as data with their pedigree.

A published table: its rows, what its columns mean, and where it comes from.

A table is two files in `data/`: NAME.csv with the printed digits, one unit a column, and NAME.toml with the pedigree
(paper, arXiv number, place in it) and with what is uncertain or restored, so that a reconstruction is not mistaken for
print.

A measured decode step, as an object that a law can be asked about; `tools.measured_steps` reads those of the published
table `measured-steps`.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.step_time.step_work import DecodeStep
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class Pedigree:
    """Where a table comes from.

    Parameters
    ----------
    paper, authors
        Title and authors.
    arxiv
        Number and version, or empty where there is none.
    place
        Number of the table, or where in the text.
    setup
        Model, machine and load of the measurement or simulation.
    uncertain
        What the source leaves open, and what limits the numbers, a sentence each.
    restored
        What is not print: derived entries, joined tables, units put back.
    """

    paper: str
    authors: str
    arxiv: str
    place: str
    setup: str
    uncertain: tuple[str, ...]
    restored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `unit` is "1" for numbers without one, and empty for text."""

    name: str
    unit: str
    meaning: str

    @property
    def numeric(self) -> bool:
        """Whether the entries are numbers."""
        return self.unit != ""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A published table; `rows` hold floats where the column has a unit and text elsewhere; `text` is the CSV."""

    name: str
    about: str
    pedigree: Pedigree
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, float | str], ...]
    text: str

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column of numbers, float64 (rows,), in the unit of the column."""
        known = [one.name for one in self.columns if one.numeric]
        if column not in known:
            raise unknown(f"number column of published table '{self.name}'", column, known)
        return np.array([row[column] for row in self.rows], dtype=np.float64)

    def group(self, name: str) -> tuple[Mapping[str, float | str], ...]:
        """Return the rows of one group, in printed order."""
        groups = list(dict.fromkeys(str(row.get("group", "")) for row in self.rows))
        if name not in groups:
            raise unknown(f"group of published table '{self.name}'", name, groups)
        return tuple(row for row in self.rows if row.get("group", "") == name)


def published_names() -> tuple[str, ...]:
    """Return the names of all shipped tables."""
    entries = (entry.name for entry in files(__package__).joinpath("data").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in entries if name.endswith(".toml")))


def published_table(name: str) -> PublishedTable:
    """Return a shipped table.

    Raises
    ------
    InputError
        Where there is no such table; the nearest names are given.
    """
    if name not in published_names():
        raise unknown("published table", name, published_names())
    data = files(__package__).joinpath("data")
    text = data.joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return _table(name, tomllib.loads(data.joinpath(f"{name}.toml").read_text(encoding="utf-8")), text)


def _table(name: str, card: Mapping[str, Any], text: str) -> PublishedTable:
    columns = tuple(Column(column, **meaning) for column, meaning in card["columns"].items())
    reader = csv.DictReader(io.StringIO(text), strict=True)
    if list(reader.fieldnames or ()) != [column.name for column in columns]:
        raise InputError(f"published table '{name}': {name}.csv and {name}.toml do not name the same columns")
    rows = tuple(
        {column.name: float(row[column.name]) if column.numeric else row[column.name] for column in columns}
        for row in reader
    )
    pedigree: dict[str, Any] = {
        entry: tuple(value) if isinstance(value, list) else value for entry, value in card["pedigree"].items()
    }
    return PublishedTable(name, card["about"], Pedigree(**pedigree), columns, rows, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep(DecodeStep):
    """One measured decode step; the columns of the table `measured-steps`.

    Parameters
    ----------
    source, run, place
        Key of the document, rows of one engine and machine, and where in the document the figure stands.
    seconds
        s, the step.
    doubt
        Standard deviation of the logarithm of the time that rounding and conversion leave open.
    watts
        W of one device, 0 where not published.
    """

    source: str
    run: str
    place: str
    seconds: float
    doubt: float = 0.03
    watts: float = 0.0

    def __post_init__(self) -> None:
        DecodeStep.__post_init__(self)
        if not self.seconds > 0:
            raise InputError(f"{self.place}: the step takes {self.seconds} s; expected a time above 0")
