"""The records of a JSON file as rows, wherever they stand in it.

A document has its records in one of four ways: one a line; a list; a list somewhere inside (`benchmarks[0].requests.
successful`); or one field per quantity, each an array with an entry per request. What has names of prompt and output
tokens decides. Lists beside each other in one object (successful, errored) are one run, and `(list)` says which; of
several runs in one file, which are several traffics, one is to be named by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from lbopt.columns import quantity_of
from lbopt.exceptions import InputError
from lbopt.files import JsonFault, json_value, listed
from lbopt.instances.readers.json_rows import whole
from lbopt.instances.readers.values import RowFault, parse
from lbopt.instances.router_log.cells import LIST, TRUNCATED, Table, flatten, table_of
from lbopt.instances.router_log.known import export_of
from lbopt.instances.router_log.spans import is_spans, span_records

#: Records of a list that are looked at to tell what it holds.
_SAMPLE = 20
_TOKENS = {"prompt", "output"}
#: What stands for all runs of a file.
ALL = "*"


class Records(NamedTuple):
    """Records that were found in a document: path, rows, the names beside them, and what is not read."""

    path: str
    rows: list[dict[str, Any]]
    around: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        """The path up to its last index, the run that they belong to."""
        return self.path[: self.path.rfind("]") + 1]


def json_table(data: bytes, source: str, at: str | None = None) -> Table:
    """Return the records of a JSON file as rows; names of nested fields are joined by dots.

    Parameters
    ----------
    at
        Path of the list or run that is meant, or its beginning; "*" takes all. None where the file has one.
    """
    text = data.decode().strip()
    if text.startswith("{") and re.search(r"^\}\s*\n\{\s*$", text, re.MULTILINE):  # printed one after the other
        text = re.sub(r"\r?\n(?!\{)", " ", text)
        data = text.encode()
    first, _, rest = text.partition("\n")
    begin = _value(first)
    if not isinstance(begin, dict | list) or not rest.strip():  # one document
        document = begin if isinstance(begin, dict | list) and not rest.strip() else whole(text, source)
        if is_spans(document):
            return _spans([document], source, len(data))
        found = list(records_in(document))
        if not found and at is None and isinstance(document, dict) and _tells(document):
            return table_of([(1, document)], source, "JSON", len(data))
        return _chosen(found, document, source, at, len(data))
    if is_spans(begin):
        return _spans((record for _, record in _lines(data, source)), source, len(data))
    lines = _lines(data, source)
    opening = list(islice(lines, _SAMPLE))
    if not any(isinstance(value, dict | list) and any(records_in(value)) for _, value in opening):
        return table_of(chain(opening, lines), source, "JSON lines", len(data))
    found = [
        one._replace(path=f"line[{place}]{'.' * bool(one.path)}{one.path}")
        for place, value in chain(opening, lines)
        for one in records_in(value)
    ]
    return _chosen(found, {}, source, at, len(data))


def records_in(value: Any, path: str = "") -> Iterator[Records]:
    """Yield the lists and arrays inside a value whose names say prompt and output tokens."""
    if isinstance(value, list):
        if not any(isinstance(one, dict) for one in value[:_SAMPLE]):
            return
        if any(any(records_in(one)) for one in value[:_SAMPLE]):
            for place, one in enumerate(value):
                yield from records_in(one, f"{path}[{place}]")
        elif any(_tells(one) for one in value[:_SAMPLE]):
            yield Records(path, value)
    elif isinstance(value, dict):
        if (arrays := _arrays(value)) is not None:
            yield arrays._replace(path=path)
            return
        inner = [
            found
            for name, one in value.items()
            if isinstance(one, dict | list)
            for found in records_in(one, f"{path}.{name}" if path else name)
        ]
        yield from (found._replace(around=found.around | value.keys()) for found in inner)


def _tells(record: Any) -> bool:
    """Tell whether plain fields of an object say its prompt and output tokens."""
    if not isinstance(record, dict):
        return False
    row: dict[str, str] = {}
    flatten(record, "", row, {})
    return {found[0] for name in row if (found := quantity_of(name))} >= _TOKENS


def _arrays(document: dict[str, Any]) -> Records | None:
    """Return the records of an object whose fields are arrays over requests; None where it is no such object.

    Raises
    ------
    InputError
        Where arrays of quantities differ in length.
    """
    arrays = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and not any(isinstance(one, dict) for one in value)
    }
    says = {name: found[0] for name in arrays if (found := quantity_of(name)) is not None}
    counts = {name for name, quantity in says.items() if quantity in _TOKENS and all(map(_is_count, arrays[name]))}
    if {says[name] for name in counts} < _TOKENS:
        return None
    sizes = {name: len(arrays[name]) for name in says}
    most = max(sizes[name] for name in counts)
    if len({sizes[name] for name in counts}) > 1 and max(sizes.values()) < 2:
        return None
    if odd := {
        name: size for name, size in sizes.items() if size not in (most, 0) or (size == 0 < most and name in counts)
    }:
        one = next(name for name in counts if sizes[name] == most)
        raise InputError(
            f"the array '{one}' has {most:,} entries and '{next(iter(odd))}' {next(iter(odd.values())):,}; expected "
            "one per request in each"
        )
    kept = [name for name, value in arrays.items() if len(value) == most]
    rows = [dict(zip(kept, entries, strict=True)) for entries in zip(*(arrays[name] for name in kept), strict=True)]
    other = {name: len(value) for name, value in arrays.items() if len(value) not in (most, 0)}
    notes = (f"arrays of another length are not read: {listed(other)}",) if other else ()
    return Records("", rows, frozenset(document), notes)


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0)


def _chosen(found: list[Records], document: Any, source: str, at: str | None, size: int) -> Table:
    """Return the table of the run that is meant.

    Parameters
    ----------
    found
        Lists that say tokens.
    document
        The whole, where nothing in it says tokens, to look for lists that a path names.
    source, at, size
        As in `json_table`.
    """
    lists = found or list(_all_lists(document))
    candidates = [one for one in lists if one.rows] or lists
    if at is not None and at != ALL:
        wanted = [one for one in candidates if re.match(rf"{re.escape(at)}($|[.\[])", one.path)]
        if not wanted:
            raise InputError(f"{source} has no list '{at}'; its lists of records are {_named(candidates)}")
        return _table(wanted, source, size)
    runs = list(dict.fromkeys(one.run for one in found if one.rows))
    if len(runs) > 1 and at is None:
        counts = {run: sum(len(one.rows) for one in found if one.run == run) for run in runs}
        shown_runs = ", ".join(f"{run} ({count:,} requests)" for run, count in islice(counts.items(), 6))
        raise InputError(
            f"{source} holds {len(runs)} runs, which are not one traffic: {shown_runs}{', ...' * (len(runs) > 6)}; "
            f"name one with --column 'rows={runs[0]}', or read all as one with --column 'rows={ALL}'"
        )
    if not found:
        whole = Records("", [document] if isinstance(document, dict) else [])
        known = (one for one in islice((*candidates, whole), _SAMPLE) if _is_known(one, source, size))
        candidates = [one for one in (next(known, None),) if one] or candidates
    if not found and len(candidates) != 1:
        what = f"lists of records are {_named(candidates)}" if candidates else f"fields are {listed(document)}"
        raise InputError(
            f"{source} is one JSON object, and no list in it says the tokens of requests; its {what}; name the list "
            "with --column rows=NAME, or give one object per line, an array of objects, or arrays over requests"
        )
    return _table(candidates, source, size)


def _is_known(records: Records, source: str, size: int) -> bool:
    """Tell whether records are those of a known format, whose entry says how to get tokens."""
    return bool(export_of(table_of(enumerate(records.rows[:_SAMPLE]), source, "JSON", size)).needs)


def _table(chosen: list[Records], source: str, size: int) -> Table:
    """Return records of one or several lists as rows; of several, a column says in which each stood."""
    several = len({one.path for one in chosen if one.rows}) > 1
    rows = [
        {**row, LIST: one.path.rpartition(".")[2]} if several and isinstance(row, dict) else row
        for one in chosen
        for row in one.rows
    ]
    if not rows:
        raise InputError(f"{source}: {_named(chosen)}: no request; expected at least one")
    table = table_of(enumerate(rows, start=1), source, "JSON", size)
    around = frozenset().union(*(one.around for one in chosen))
    notes = dict.fromkeys(note for one in chosen for note in one.notes)
    return replace(table, around=around, notes=(*notes, *table.notes))


def _all_lists(value: Any, path: str = "") -> Iterator[Records]:
    """Yield every list of objects inside a value."""
    if isinstance(value, list):
        if all(isinstance(one, dict) for one in value):
            yield Records(path, value)
        for place, one in enumerate(value[:_SAMPLE]):
            yield from _all_lists(one, f"{path}[{place}]")
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _all_lists(one, f"{path}.{name}" if path else name)


def _named(lists: Iterable[Records]) -> str:
    return ", ".join(f"'{one.path or 'arrays'}' ({len(one.rows):,} records)" for one in islice(lists, 8)) or "none"


def _value(line: str) -> Any:
    try:
        return json_value(line)
    except JsonFault:
        return None


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
    records, left_out, notes = span_records(documents, source)
    if not records:
        raise InputError(
            f"{source} holds spans, and none says its tokens ({left_out}); expected gen_ai.usage.input_tokens and "
            "gen_ai.usage.output_tokens (or prompt_tokens and completion_tokens)"
        )
    table = table_of(records, source, "spans", size)
    table.left_out.update(left_out)
    return replace(table, notes=(*notes, *table.notes))
