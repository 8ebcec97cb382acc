"""The rows of a log as columns of text, spans of OpenTelemetry among them.

OpenTelemetry spans (OTLP as JSON) as records: one a span that says its tokens.

A gateway and the engine behind it may both write a span for one request. Of spans inside one another the innermost
counts, since it knows the engine. Times of a span are `span.start` (the request is known) and `span.end`.

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

_CLIENT = (3, "3", "SPAN_KIND_CLIENT")
_ERROR = (2, "2", "STATUS_CODE_ERROR")


def is_spans(document: Any) -> bool:
    """Tell whether a JSON value holds spans in the form of OTLP."""
    return isinstance(document, dict) and bool({"resourceSpans", "resource_spans", "batches"} & document.keys())


def span_records(documents: Iterable[Any], source: str) -> tuple[list[tuple[int, dict[str, Any]]], dict[str, int]]:
    """Return number and fields of the spans that are requests, and how many others there are.

    Raises
    ------
    InputError
        Where a group of spans is no list of objects, so that spans would be lost.
    """
    found: list[tuple[int, dict[str, Any], str | None, str | None]] = []
    above: dict[str | None, str | None] = {}  # the parent of each span
    number = silent = 0
    bare: list[str] = []
    for span, resource in _spans_in(documents, source, bare):
        number += 1
        own, parent = _id(span, "spanId"), _id(span, "parentSpanId")
        above[own] = parent
        attributes = _attributes(span)
        if not any("usage" in key and "tokens" in key for key in attributes):
            silent += 1
            continue
        # Who wrote the span of a client is not who served its request.
        holder = "client.resource" if _field(span, "kind") in _CLIENT else "resource"
        record = {**{f"{holder}.{key}": value for key, value in resource.items()}, **attributes}
        if record.get("server.address") and record.get("server.port"):
            record["server.address"] = f"{record['server.address']}:{record['server.port']}"
        record["span.start"] = _field(span, "startTimeUnixNano")
        record["span.end"] = _field(span, "endTimeUnixNano") or None
        record["span.trace_id"] = _field(span, "traceId")
        record["span.status"] = _status(span)
        for event in _objects(span.get("events")):
            if "first" in str(event.get("name", "")).lower():
                record[f"event.{event['name']}"] = _field(event, "timeUnixNano")
        found.append((number, record, own, parent))
    outer = set()
    for _, _, _, parent in found:
        while parent and parent not in outer:
            outer.add(parent)
            parent = above.get(parent)
    records = [(place, record) for place, record, own, _ in found if own is None or own not in outer]
    left_out = {
        "spans without tokens": silent,
        "spans around others": len(found) - len(records),
        "groups without spans": len(bare),
    }
    return records, {reason: count for reason, count in left_out.items() if count}


def _spans_in(
    documents: Iterable[Any], source: str, bare: list[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each span with the attributes of its resource; `bare` takes the names of the lists that are missing."""
    for document in documents:
        for group in _all(document, source, bare, "resourceSpans", "resource_spans", "batches"):
            resource = group.get("resource")
            attributes = _attributes(resource) if isinstance(resource, dict) else {}
            for scope in _all(group, source, bare, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
                for span in _all(scope, source, bare, "spans"):
                    yield span, attributes


def _all(holder: Any, source: str, bare: list[str], *names: str) -> list[dict[str, Any]]:
    """Return the objects of a list by one of its names; refuse what is no such list, since spans would be lost.

    Parameters
    ----------
    bare
        Takes the first name where the list is missing (changed in place).
    """
    values = _first(holder, *names) if isinstance(holder, dict) else holder
    if values is None:
        bare.append(names[0])
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        wrong = (
            next((one for one in values if not isinstance(one, dict)), values) if isinstance(values, list) else values
        )
        raise InputError(f"{source}: {names[0]} holds {shown(wrong)}; expected a list of objects")
    return values


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _first(record: dict[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if name in record), None)


def _field(record: dict[str, Any], name: str) -> Any:
    """Return a field by its name in JSON, or in the protocol's own spelling (start_time_unix_nano)."""
    if name in record:
        return record[name]
    return record.get("".join("_" + letter.lower() if letter.isupper() else letter for letter in name))


def _id(span: dict[str, Any], name: str) -> str | None:
    value = _field(span, name)
    return value if isinstance(value, str) else None


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    attributes = holder.get("attributes") or []
    if isinstance(attributes, dict):
        return dict(attributes)
    return {str(entry["key"]): _value(entry.get("value")) for entry in _objects(attributes) if "key" in entry}


def _value(value: Any) -> Any:
    """Return what ``{"intValue": "7"}`` holds; of an array its first entry."""
    if not isinstance(value, dict):
        return value
    for name, inner in value.items():
        if name in ("arrayValue", "array_value"):
            values = inner.get("values") if isinstance(inner, dict) else None
            return _value(values[0]) if isinstance(values, list) and values else None
        if name not in ("kvlistValue", "kvlist_value", "bytesValue", "bytes_value"):
            return inner
    return None


def _status(span: dict[str, Any]) -> str | None:
    status = span.get("status")
    return "error" if isinstance(status, dict) and status.get("code") in _ERROR else None


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
