"""The bytes of a log as columns of text with the place of each row, whatever the format, uninterpreted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import called, csv_records, listed, starts_with
from lbopt.instances.readers.contents import read_contents

DELIMITERS = (",", ";", "\t", "|")

TRUNCATED = "it is the last one, and the file may be truncated: fetch or copy it again"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Rows of a log as text.

    Parameters
    ----------
    source
        The file, as errors call it.
    kind
        "CSV", "JSON lines", "JSON", "Parquet" or "spans".
    columns
        Texts by name, (N,) each; an absent value is the empty text.
    places
        (N,), the line, record, row or span of each row, counted from 1.
    left_out
        Why rows are not here, and how many.
    ends_open
        Whether the last line has no line end, as in a file that was cut off.
    """

    source: str
    kind: str
    columns: dict[str, list[str]]
    places: list[int]
    left_out: dict[str, int] = field(default_factory=dict)
    ends_open: bool = False

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int) -> str:
        """Return "FILE, line 7", to begin an error with."""
        word = {"CSV": "line", "JSON lines": "line", "JSON": "record", "Parquet": "row", "spans": "span"}[self.kind]
        return f"{self.source}, {word} {self.places[row]:,}"

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Return a table of some rows."""
        chosen = rows.tolist()
        columns = {name: list(compress(texts, chosen)) for name, texts in self.columns.items()}
        return replace(self, columns=columns, places=list(compress(self.places, chosen)))

    def hint_at(self, row: int) -> str:
        """Return "; it is the last one, ..." for a broken last row without line end, else nothing."""
        return f"; {TRUNCATED}" if self.ends_open and row == len(self) - 1 else ""


def read_table(path: str | os.PathLike[str]) -> Table:
    """Return the rows of a file as text."""
    if starts_with(path, b"PAR1"):
        return _parquet(path)
    from lbopt.instances.router_log.json_table import read_json_table

    data, name = read_contents(path), called(path)
    table = read_json_table(data, name) if data.lstrip()[:1] in (b"{", b"[") else _csv(data.decode(), name)
    if not len(table):
        raise InputError(f"{path} holds no row below its header; expected one row a request")
    return table


def _csv(text: str, source: str) -> Table:
    delimiter = _delimiter(text, source)
    rows = _records(text, delimiter, source)
    _, first = next(rows, (1, []))
    if not first:
        raise InputError(f"{source} holds no header; expected the names of the columns in its first line")
    header = [name.strip() for name in first]
    if any(name.replace(".", "").replace("-", "").isdigit() for name in header):
        raise InputError(f"{source}, line 1 holds numbers; expected the names of the columns")
    width, again, empty = len(header), 0, 0
    columns: list[list[str]] = [[] for _ in header]
    places: list[int] = []
    ends_open = not text.endswith(("\n", "\r"))
    for line, row in rows:
        if len(row) != width:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            last = next(((n, more) for n, more in rows if any(cell.strip() for cell in more)), None) is None
            found = "1 field" if len(row) == 1 else f"{len(row)} fields"
            cause = f"; {TRUNCATED}" if last and len(row) < width else ""
            raise InputError(f"{source}, line {line:,}: {found}; expected {width} ({listed(header)}){cause}")
        if row[0].strip() == header[0] and [cell.strip() for cell in row] == header:
            again += 1
            continue
        if width > 1 and not any(row):
            empty += 1
            continue
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
        places.append(line)
    last_cells = columns[-1][-1000:]
    if last_cells and ends_open and not last_cells[-1].strip() and sum(not cell.strip() for cell in last_cells) == 1:
        raise InputError(f"{source}, line {places[-1]:,} ends after a {delimiter!r}; {TRUNCATED}")
    counts = {"repeated header": again, "empty row": empty}
    left_out = {reason: count for reason, count in counts.items() if count}
    return Table(
        source=source,
        kind="CSV",
        columns=_by_name(header, columns, source),
        places=places,
        left_out=left_out,
        ends_open=ends_open,
    )


def _delimiter(text: str, source: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    counts = {mark: line.count(mark) for mark in DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if not counts[best]:
        raise InputError(
            f"{source}, line 1: one column, {line.strip()[:60]!r}; expected names with , ; | or a tab between"
        )
    return best


def _records(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which a row ends, and its fields; blank lines before the header are passed over."""
    begun = False
    for line, row in csv_records(text, source, delimiter=delimiter, hint=f"; {TRUNCATED}"):
        begun = begun or any(cell.strip() for cell in row)
        if begun:
            yield line, row


def _by_name(header: list[str], columns: list[list[str]], source: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for place, (name, column) in enumerate(zip(header, columns, strict=True), start=1):
        if name in named and name:
            raise InputError(f"{source}, line 1: {header.count(name)} columns are called {name!r}; expected one")
        named[name or f"(column {place})"] = column
    return named


def _parquet(path: str | os.PathLike[str]) -> Table:
    from lbopt.files.parquet import parquet_columns

    columns = {name: [text_of(value) for value in values] for name, values in parquet_columns(path).items()}
    rows = len(next(iter(columns.values()), []))
    return Table(source=called(path), kind="Parquet", columns=columns, places=list(range(1, rows + 1)))


def text_of(value: Any) -> str:
    """Return a value of JSON or Parquet as a cell of text; what is absent is the empty text."""
    if value is None or value != value:  # None, NaN, NaT
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else str(value)
