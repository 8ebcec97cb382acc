"""The rows of a log as columns of text.

The bytes of a log as columns of text with the place of each row, whatever the format, uninterpreted.

CSV, Parquet, one JSON object a line, an array of objects, or OpenTelemetry spans (`spans`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import JsonFault, called, csv_records, json_value, listed, shown, starts_with
from lbopt.instances.readers.formats import read_contents
from lbopt.instances.readers.values import RowFault, parse
from lbopt.instances.router_log.spans import is_spans, span_records

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


#: Entries, records times names of fields, that any file may have.
_HARMLESS_CELLS = 2_000_000


def read_json_table(data: bytes, source: str) -> Table:
    """Return the records of a JSON file as rows; names of nested fields are joined by dots."""
    text = data.decode().strip()
    if text.startswith("["):
        records = _whole(text, source)
        return _table(enumerate(records, start=1), source, "JSON", len(data))
    first = text.split("\n", 1)[0]
    if not _is_object(first):  # a document over several lines
        document = _whole(text, source)
        if is_spans(document):
            return _spans([document], source, len(data))
        return _table(enumerate(_only_list(document, source), start=1), source, "JSON", len(data))
    if is_spans(json_value(first)):
        return _spans((record for _, record in _lines(data, source)), source, len(data))
    if "\n" not in text:
        document = json_value(first)
        lists = [
            value for value in document.values() if isinstance(value, list) and value and isinstance(value[0], dict)
        ]
        if len(lists) == 1:
            return _table(enumerate(lists[0], start=1), source, "JSON", len(data))
    return _table(_lines(data, source), source, "JSON lines", len(data))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json_value(line), dict)
    except JsonFault:
        return False


def _whole(text: str, source: str) -> Any:
    try:
        return parse(text)
    except RowFault as fault:
        raise InputError(f"{source}: {fault}; the file may be truncated: fetch or copy it again") from None


def _only_list(document: Any, source: str) -> list[Any]:
    lists = [value for value in document.values() if isinstance(value, list)] if isinstance(document, dict) else []
    if len(lists) != 1:
        raise InputError(
            f"{source} is one JSON object; expected one object a line, an array of objects, or resourceSpans"
        )
    return list(lists[0])


def _lines(data: bytes, source: str) -> Iterator[tuple[int, Any]]:
    lines = data.decode().rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, parse(line)
        except RowFault as fault:
            cause = f"; {TRUNCATED}" if number == len(lines) else ""
            raise InputError(f"{source}, line {number:,}: {fault}{cause}") from None


def _spans(documents: Iterable[Any], source: str, size: int) -> Table:
    records, left_out = span_records(documents, source)
    if not records:
        raise InputError(
            f"{source} holds spans, and none says its tokens; expected the attributes gen_ai.usage.input_tokens and "
            "gen_ai.usage.output_tokens (or prompt_tokens and completion_tokens)"
        )
    table = _table(records, source, "spans", size)
    table.left_out.update(left_out)
    return table


def _table(records: Iterable[tuple[int, Any]], source: str, kind: str, size: int) -> Table:
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
    for place, record in records:
        if not isinstance(record, dict):
            word = "line" if kind == "JSON lines" else "record"
            raise InputError(f"{source}, {word} {place:,} is {shown(record)}; expected a JSON object")
        row: dict[str, str] = {}
        flatten(record, "", row)
        for name, text in row.items():
            column = columns.setdefault(name, [])
            column += [""] * (len(places) - len(column))
            column.append(text)
        places.append(place)
        if len(columns) * len(places) > max(_HARMLESS_CELLS, size):
            raise InputError(
                f"{source}: {len(places):,} records have {len(columns):,} names of fields; expected records of one kind"
            )
    for column in columns.values():
        column += [""] * (len(places) - len(column))
    return Table(source=source, kind=kind, columns=columns, places=places)


def flatten(record: dict[str, Any], prefix: str, row: dict[str, str]) -> None:
    """Write the fields of an object into a row; of a list its only or first plain value.

    Parameters
    ----------
    prefix
        What to put before the names of its fields.
    row
        Texts by name, changed in place.
    """
    for name, value in record.items():
        if isinstance(value, dict):
            flatten(value, f"{prefix}{name}.", row)
        elif not isinstance(value, list):
            row[prefix + name] = text_of(value)
        elif value and not isinstance(value[0], dict | list):
            row[prefix + name] = text_of(value[0])
