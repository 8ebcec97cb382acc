"""Rows of a log as columns of text, uninterpreted, whatever the container; records of any shape become such rows.

Fields of nested objects are joined by dots. A list of plain values inside a record (times of tokens, ids of blocks)
becomes its number of entries, the first, the last and the sum, `times[count]`, `times[first]`, ..., so that none of
them is taken for the whole; a list of objects is passed over and remarked on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import quantity_of
from lbopt.exceptions import InputError
from lbopt.files import JsonFault, json_value, listed, shown

#: Entries, records times names of fields, that any file may have.
_HARMLESS_CELLS = 2_000_000

#: What is kept of a list of plain values in a record.
COUNT, FIRST, LAST, SUM = "[count]", "[first]", "[last]", "[sum]"

#: The column that says in which of several lists of one run a record stood.
LIST = "(list)"

_PLACES = {"CSV": "line", "JSON lines": "line", "JSON": "record", "Parquet": "row", "spans": "span"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Rows of a log as text.

    Parameters
    ----------
    source
        The file, as errors call it.
    kind
        "CSV", "JSON lines", "JSON", "Parquet", "spans" or "text".
    columns
        Texts by name, (N,) each; an absent value is the empty text.
    places
        (N,), the line, record, row or span of each row, counted from 1.
    left_out
        Why rows are not here, and how many.
    ends_open
        Whether the last line has no line end, as in a file that was cut off.
    around
        Names of the fields that stand beside the rows, in the object that holds them.
    notes
        Sentences about what of the file is not in the rows.
    """

    source: str
    kind: str
    columns: dict[str, list[str]]
    places: list[int]
    left_out: dict[str, int] = field(default_factory=dict)
    ends_open: bool = False
    around: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int) -> str:
        """Return "FILE, line 7", to begin an error with."""
        return f"{self.source}, {_PLACES.get(self.kind, 'line')} {self.places[row]:,}"

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return a table of some rows."""
        chosen = rows.tolist()
        columns = {name: list(compress(texts, chosen)) for name, texts in self.columns.items()}
        return replace(self, columns=columns, places=list(compress(self.places, chosen)))

    def hint_at(self, row: int) -> str:
        """Return "; it is the last one, ..." for a broken last row without line end, else nothing."""
        return f"; {TRUNCATED}" if self.ends_open and row == len(self) - 1 else ""


TRUNCATED = "it is the last one, and the file may be truncated: fetch or copy it again"


def text_of(value: Any) -> str:
    """Return a value of JSON or Parquet as a cell of text; what is absent is the empty text."""
    if value is None or value != value:  # None, NaN, NaT
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else str(value)


def table_of(records: Iterable[tuple[int, Any]], source: str, kind: str, size: int) -> Table:
    """Turn records with their places into columns.

    Parameters
    ----------
    source, kind
        As in `Table`.
    size
        Bytes of the file. Records that share no names would make a table of the square of their number.
    """
    columns: dict[str, list[str]] = {}
    places: list[int] = []
    passed: dict[str, int] = {}
    for place, record in records:
        if not isinstance(record, dict):
            raise InputError(
                f"{source}, {_PLACES.get(kind, 'record')} {place:,} is {shown(record)}; expected a JSON object"
            )
        row: dict[str, str] = {}
        flatten(record, "", row, passed)
        for name, text in row.items():
            column = columns.setdefault(name, [])
            column += [""] * (len(places) - len(column))
            column.append(text)
        places.append(place)
        if len(columns) * len(places) > max(_HARMLESS_CELLS, 4 * size):
            raise InputError(
                f"{source}: {len(places):,} records have {len(columns):,} names of fields; expected records of one kind"
            )
    for column in columns.values():
        column += [""] * (len(places) - len(column))
    _single(columns)
    notes: tuple[str, ...] = ()
    if passed:
        notes = (
            f"lists of objects inside the records are not read: {listed(passed)} ({sum(passed.values()):,} entries)",
        )
    return Table(source=source, kind=kind, columns=columns, places=places, notes=notes)


def _single(columns: dict[str, list[str]]) -> None:
    """Give lists that have at most one entry in every record the name of the field (`columns` is changed in place)."""
    for name in [name.removesuffix(COUNT) for name in columns if name.endswith(COUNT)]:
        if name not in columns and set(columns[name + COUNT]) <= {"", "0", "1"}:
            columns[name] = columns[name + FIRST] if name + FIRST in columns else [""] * len(columns[name + COUNT])


def _object_in(text: str) -> Any:
    """Return the object that a text spells, such as Higress' `ai_log`, if its values are plain; else the text."""
    try:
        value = json_value(text)
    except JsonFault:
        return text
    plain = isinstance(value, dict) and not any(isinstance(one, dict | list) for one in value.values())
    return value if plain and any(quantity_of(name) for name in value) else text


def unfolded(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return columns of text with those whose cells are objects of JSON, or nothing, as a column per field."""
    plain: dict[str, list[str]] = {}
    for name, cells in columns.items():
        plain[name] = cells
        if any(cells) and all(cell.startswith("{") for cell in cells if cell):
            records = ((row, {name: json_value(cell or "{}")}) for row, cell in enumerate(cells))
            try:
                inner = table_of(records, "", "", sum(map(len, cells))).columns
            except (JsonFault, InputError):
                continue
            del plain[name]
            plain |= {key: texts for key, texts in inner.items() if key not in columns}
    return plain


def flatten(record: dict[str, Any], prefix: str, row: dict[str, str], passed: dict[str, int]) -> None:
    """Write the fields of an object into a row.

    Parameters
    ----------
    prefix
        What to put before the names of its fields.
    row
        Texts by name, changed in place.
    passed
        Entries of lists of objects by name, which are passed over; changed in place.
    """
    for name, held in record.items():
        value = _object_in(held) if isinstance(held, str) and held.startswith('{"') else held
        if isinstance(value, dict):
            flatten(value, f"{prefix}{name}.", row, passed)
        elif not isinstance(value, list):
            row[prefix + name] = text_of(value)
        elif any(isinstance(one, dict | list) for one in value):
            passed[prefix + name] = passed.get(prefix + name, 0) + len(value)
        else:
            row[prefix + name + COUNT] = str(len(value))
            if value:
                row[prefix + name + FIRST], row[prefix + name + LAST] = text_of(value[0]), text_of(value[-1])
            if all(isinstance(one, int | float) for one in value):
                row[prefix + name + SUM] = text_of(sum(value))
