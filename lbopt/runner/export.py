"""A store as a table: one row a task, parameters, answer and provenance spread over columns.

A nested dict becomes columns named by its path, `answer.times.median`. A name that is empty, or holds a dot, a quote, a
backslash or what cannot be printed, is quoted as in JSON, so that no two paths have the same name. Everything else that
is not a number or a text (a list, an empty dict) is written as JSON.

A column has one type. Where its values are all of one kind they stay as they are, whole numbers as pandas' `Int64`,
which knows missing values; whole numbers and floats together become floats where that changes none. Whatever else is
mixed, and whole numbers beyond 64 bits, become JSON, value by value, so nothing is rounded or guessed.

Writes the table of a store to a file, whole or not at all: into a file beside it, which then takes its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner.row import Row
from lbopt.runner.store import Store
from lbopt.spec import unknown
from lbopt.whole_file import whole_file

if TYPE_CHECKING:
    from pandas import DataFrame, Series


#: Columns that every table has; those of parameters stand before the seed, those of answers behind the status.
_FIRST = ("key", "function")
_LAST = ("failure.kind", "failure.exception", "failure.message", "attempts", "seconds", "finished")

_LARGEST = 2**63

#: Whole numbers up to here are floats without a loss.
_EXACT = 2**53


def frame_of(rows: Iterable[Row]) -> DataFrame:
    """Return the table of `rows`, in their order; there is always a column for each of what all rows have.

    Columns: key, function, parameters..., seed, status, answer..., failure.kind, failure.exception, failure.message,
    attempts, seconds (s), finished (UTC, ISO 8601), provenance... .
    """
    import pandas

    # by place, so that the columns of each part come out side by side, in the order of their first appearance
    parts: list[dict[str, dict[int, Any]]] = [{} for _ in range(7)]
    count = 0
    for number, row in enumerate(rows):
        count = number + 1
        failure = row.failure
        why = ("", "", "") if failure is None else (failure.kind, failure.exception, failure.message)
        given: tuple[Iterable[tuple[str, Any]], ...] = (
            zip(_FIRST, (row.task.key, row.task.function), strict=True),
            _spread("parameters", row.task.parameters) if row.task.parameters else (),
            [("seed", row.task.seed)],
            [("status", row.status)],
            _spread("answer", row.answer) if failure is None else (),
            zip(_LAST, (*(text or None for text in why), row.attempts, row.seconds, row.finished), strict=True),
            _spread("provenance", row.provenance),
        )
        for part, values in zip(parts, given, strict=True):
            for name, value in values:
                part.setdefault(name, {})[number] = value
    columns: dict[str, Series[Any]] = {}
    for part in parts:
        for name, column in part.items():
            values, kind = _typed([column.get(number) for number in range(count)])
            columns[name] = pandas.Series(values, dtype=kind)
    if not columns:
        return pandas.DataFrame(columns=[*_FIRST, "seed", "status", *_LAST])
    return pandas.DataFrame(columns)


def _spread(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a value and what stands in them."""
    if not (isinstance(value, dict) and value):
        yield name, value
        return
    for key, entry in value.items():
        plain = key and key.isprintable() and not any(mark in key for mark in '."\\')
        yield from _spread(f"{name}.{key if plain else json.dumps(key)}", entry)


def _typed(values: list[Any]) -> tuple[list[Any], str]:
    """Return the values as their column holds them, and the type of that for pandas."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return [None if value is None else _printable(value) for value in values], "str"
    if kinds == {bool}:
        return values, "boolean"
    whole = [value for value in values if type(value) is int]
    if kinds == {int} and all(-_LARGEST <= value < _LARGEST for value in whole):
        return values, "Int64"
    if kinds <= {int, float} and float in kinds and all(abs(value) <= _EXACT for value in whole):
        return values, "float64"
    return [None if value is None else json.dumps(value, separators=(",", ":")) for value in values], "str"


def _printable(text: str) -> str:
    """Return `text` with what no file of text can hold (halves of characters, zero bytes) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def _parquet(frame: DataFrame, path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise BackendUnavailableError(
            "parquet needs the package pyarrow, which is absent: pip install 'lbopt[parquet]'; csv needs none"
        ) from None
    frame.to_parquet(path, engine="pyarrow", index=False)


def _csv(frame: DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, lineterminator="\n")


#: What writes a table, by the name of the format, which is also the ending of its files.
FORMATS: dict[str, Callable[[DataFrame, Path], None]] = {"parquet": _parquet, "csv": _csv}


def export_store(store: Path, to: str, out: Path | None = None) -> tuple[Path, int]:
    """Write the store at `store` as a table of format `to`; return where it is and how many rows it has.

    The store is opened to read only, so this works while a run goes on.

    Parameters
    ----------
    to
        One of `FORMATS`.
    out
        The table's file; None takes that of the store with another ending. What was there is replaced.

    Raises
    ------
    InputError
        If the format is unknown, the store is empty, or the table cannot be written there.
    StoreError
        If it is no store, or of another version.
    """
    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    place = store.with_suffix(f".{to}") if out is None else out
    with Store(store, read_only=True) as opened:
        if place.resolve() == opened.path:
            raise InputError(f"table '{place}' would take the place of the store itself; give another --out")
        frame = opened.to_frame()
    if frame.empty:
        raise InputError(f"store {store} has no results yet; there is nothing to export")
    with whole_file(place, "table") as partial:
        FORMATS[to](frame, partial)
    return place, len(frame)
