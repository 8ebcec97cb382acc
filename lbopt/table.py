"""Tables of text, and columns: what a quantity is called, what it means and how it is shown, said once.

From the columns of a study follow its CSV file and data frame (`records`), its tables in a terminal or on a page
(`table_of`) and what its manual says of them. How a table is shown is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to be shown.

    Parameters
    ----------
    title
        Shown above the table.
    caption
        One line of explanation, shown below it.
    headers
        One text a column.
    rows
        One text a cell; every row has as many cells as there are headers.
    """

    title: str
    caption: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Column:
    """A quantity of the rows of a study.

    Parameters
    ----------
    name
        In CSV files and data frames.
    meaning
        What it is, with its unit.
    header
        In tables; empty = the name.
    shown
        How a value looks in a table.
    of
        Where a row has it: the path of an attribute, or a function of outcome and row; empty = `name`.
    """

    name: str
    meaning: str = ""
    header: str = ""
    shown: Callable[[Any], str] = str
    of: str | Callable[[Any, Any], Any] = ""

    def value(self, outcome: Any, row: Any) -> Any:
        """Return the value of a row."""
        return attrgetter(self.of or self.name)(row) if isinstance(self.of, str) else self.of(outcome, row)


def records(columns: Sequence[Column], outcome: Any, rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the rows with full precision, by the names of their columns."""
    return [{one.name: one.value(outcome, row) for one in columns} for row in rows]


def table_of(title: str, caption: str, columns: Sequence[Column], outcome: Any, rows: Iterable[Any]) -> Table:
    """Return the rows as a table."""
    headers = tuple(one.header or one.name for one in columns)
    return Table(
        title, caption, headers, [tuple(one.shown(one.value(outcome, row)) for one in columns) for row in rows]
    )


def with_ends(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which each interval, ``NAME_interval``, is two: ``NAME_interval_low`` and ``…_high``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        low, high = value if name.endswith("_interval") and value else (None, None)
        found |= {f"{name}_low": low, f"{name}_high": high} if name.endswith("_interval") else {name: value}
    return found
