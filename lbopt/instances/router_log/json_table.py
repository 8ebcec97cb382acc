"""JSON logs as columns of text: one object a line, an array of objects, or OpenTelemetry spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import JsonFault, json_value, shown
from lbopt.instances.readers.values import RowFault, parse
from lbopt.instances.router_log.spans import is_spans, span_records
from lbopt.instances.router_log.table import TRUNCATED, Table, text_of

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
    records
        Place and JSON value of each.
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
    record
        The object.
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
