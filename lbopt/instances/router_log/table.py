"""The bytes of a log as columns of text with the place of each row, whatever the format, uninterpreted."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.readers.contents import read_contents
from lbopt.instances.readers.faults import listed

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
    if _starts_with(Path(path), b"PAR1"):
        return _parquet(path)
    from lbopt.instances.router_log.json_table import read_json_table

    data = read_contents(path)
    table = read_json_table(data, str(path)) if data.lstrip()[:1] in (b"{", b"[") else _csv(data.decode(), str(path))
    if not len(table):
        raise InputError(f"{path} holds no row below its header; expected one row a request")
    return table


def _starts_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(magic)) == magic
    except (OSError, ValueError):
        return False  # `read_contents` says what is wrong


def _csv(text: str, source: str) -> Table:
    delimiter = _delimiter(text, source)
    rows = _records(text, delimiter, source)
    _, first = next(rows)
    header = [name.strip() for name in first]
    if any(name.replace(".", "").replace("-", "").isdigit() for name in header):
        raise InputError(f"{source}, line 1 holds numbers; expected the names of the columns")
    width, again = len(header), 0
    kept: list[list[str]] = []
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
        if width > 1 and not any(row) and not any(cell.strip() for cell in row):
            continue
        kept.append(row)
        places.append(line)
    if kept and ends_open and not kept[-1][-1].strip() and sum(not row[-1].strip() for row in kept[-1000:]) == 1:
        raise InputError(f"{source}, line {places[-1]:,} ends after a {delimiter!r}; {TRUNCATED}")
    columns = _by_name(header, [list(column) for column in zip(*kept, strict=True)] or [[] for _ in header], source)
    left_out = {"repeated header": again} if again else {}
    return Table(source=source, kind="CSV", columns=columns, places=places, left_out=left_out, ends_open=ends_open)


def _delimiter(text: str, source: str) -> str:
    line = next(line for line in text.splitlines() if line.strip())
    counts = {mark: line.count(mark) for mark in DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if not counts[best]:
        raise InputError(
            f"{source}, line 1: one column, {line.strip()[:60]!r}; expected names with , ; | or a tab between"
        )
    return best


def _records(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which a row ends, and its fields; blank lines before the header are passed over."""
    table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begun = False
    try:
        for row in table:
            begun = begun or any(cell.strip() for cell in row)
            if begun:
                yield table.line_num, row
    except csv.Error as error:
        cause = f"; {TRUNCATED}" if "end of data" in str(error) else ""
        raise InputError(f"{source}, line {table.line_num:,}: not a CSV row ({error}){cause}") from None


def _by_name(header: list[str], columns: list[list[str]], source: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for place, (name, column) in enumerate(zip(header, columns, strict=True), start=1):
        if name in named and name:
            raise InputError(f"{source}, line 1: {header.count(name)} columns are called {name!r}; expected one")
        named[name or f"(column {place})"] = column
    return named


def _parquet(path: str | os.PathLike[str]) -> Table:
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            f"{path} is a Parquet file, and pyarrow is not installed; pip install 'lbopt[parquet]', or write it as CSV"
        ) from None
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no Parquet file that can be read: {str(error).splitlines()[0][:120]}") from None
    if frame.index.name is not None:
        frame = frame.reset_index()
    columns = {str(name): [text_of(value) for value in frame[name].tolist()] for name in frame.columns}
    return Table(source=str(path), kind="Parquet", columns=columns, places=list(range(1, len(frame) + 1)))


def text_of(value: Any) -> str:
    """Return a value of JSON or Parquet as a cell of text; what is absent is the empty text."""
    if value is None or value != value:  # None, NaN, NaT
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else str(value)
