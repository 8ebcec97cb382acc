"""The bytes of a log as a table: CSV with any of four separators, Parquet, lines of an access log, or what
JSON holds (`json_rows`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.files import called, csv_records, listed, shown, starts_with
from lbopt.instances.readers.formats import read_contents
from lbopt.instances.readers.records import OPEN_END
from lbopt.instances.router_log.access import OTHER_LINES, access_table, only_objects
from lbopt.instances.router_log.cells import TRUNCATED, Table, table_of, text_of, unfolded
from lbopt.instances.router_log.json_rows import json_table

DELIMITERS = (",", ";", "\t", "|")

#: Cells that have one width by chance.
_FEW = 5

#: Characters of a first line that are looked at.
_LOOKED_AT = 1000

#: First lines that are no header: lines of an engine's log, and Prometheus' text format.
_NO_HEADER = {
    "a line of a log": re.compile(r"\b(INFO|WARNING|WARN|ERROR|DEBUG)\b|^\["),
    "Prometheus' text format": re.compile(r"# (HELP|TYPE) |\w+(:\w+)*\{\w+="),
}


def read_table(path: str | os.PathLike[str], rows: str | None = None) -> Table:
    """Return the rows of a file as text.

    Parameters
    ----------
    rows
        Path of the list of a JSON file that holds them, where it has several.
    """
    if starts_with(path, b"PAR1"):
        return _parquet(path)
    text, name = read_contents(path).decode(), called(path)
    table = access_table(text, name)
    if table is None:
        text, others = only_objects(text)
        is_json = text.lstrip()[:1] in ("{", "[")
        table = json_table(text.encode(), name, rows) if is_json else _csv(text, name)
        table.left_out.update({OTHER_LINES: others} if others else {})
    if not len(table):
        raise InputError(f"{name} holds no row below its header; expected one row per request")
    return table


def _csv(text: str, source: str) -> Table:
    opening = text[:_LOOKED_AT].lstrip().partition("\n")[0]
    for what, pattern in _NO_HEADER.items():
        if pattern.search(opening):
            raise InputError(
                f"{source}, line 1: {shown(opening, 60)} is {what}, and no header; expected a table with one row per "
                "request: its prompt and output tokens, times and worker"
            )
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
    if ends_open and (cut := _cut(columns[-1][-1000:])) is not None:
        after = repr(cut) if cut else f"a {delimiter!r}"
        raise InputError(f"{source}, line {places[-1]:,} ends after {after}; {TRUNCATED}")
    counts = {"repeated header": again, "empty row": empty}
    left_out = {reason: count for reason, count in counts.items() if count}
    return Table(
        source=source,
        kind="CSV",
        columns=unfolded(_by_name(header, columns, source)),
        places=places,
        left_out=left_out,
        ends_open=ends_open,
        notes=(OPEN_END,) if ends_open and columns[-1] and columns[-1][-1][-1:].isdigit() else (),
    )


def _cut(cells: list[str]) -> str | None:
    """Return the last of some cells where it is shorter than all others, which have one width; else None."""
    if not cells:
        return None
    *others, last = (re.sub(r"\d", "0", cell.strip().rpartition(".")[2]) for cell in cells)
    if last == "" and "" not in others:
        return cells[-1].strip()
    one_width = len(others) > _FEW and len(set(others)) == 1 and len(others[0]) > (1 if "." in cells[0] else 8)
    return cells[-1].strip() if one_width and len(last) < len(others[0]) else None


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

    found, name = parquet_columns(path), called(path)
    if any(isinstance(value, dict | list) for values in found.values() for value in values[:100]):
        records = (dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True))
        return table_of(enumerate(records, start=1), name, "Parquet", 100 * Path(path).stat().st_size)
    columns = {name: [text_of(value) for value in values] for name, values in found.items()}
    rows = len(next(iter(columns.values()), []))
    return Table(source=name, kind="Parquet", columns=columns, places=list(range(1, rows + 1)))
