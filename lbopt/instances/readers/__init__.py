"""Readers of request traces, and the front door that picks a format of the table (`formats`).

Formats: those of `formats.TABLE`, and any CSV whose columns the user names; each plain or gzip. A row that cannot be
used is an error that names the line, unless the caller asks to skip such rows; requests without output tokens are left
out and counted. Nothing is dropped in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from lbopt.columns import SECONDS
from lbopt.exceptions import InputError
from lbopt.files import starts_with
from lbopt.instances.readers.formats import SERVEGEN_CLIENT, TABLE, Columns, Contents, Format, detect, open_contents
from lbopt.instances.readers.rows import MALFORMED, NO_OUTPUT, Reading, assemble, read_rows
from lbopt.model.trace import Trace
from lbopt.spec import did_you_mean

FORMATS = ("auto", *TABLE, "csv")

__all__ = ["FORMATS", "MALFORMED", "NO_OUTPUT", "Columns", "Reading", "read", "read_trace"]


def read_trace(
    path: str | os.PathLike[str],
    format: str = "auto",
    columns: Columns | Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    skip_malformed: bool = False,
    name: str | None = None,
) -> Trace:
    """Read a trace from a file.

    Parameters
    ----------
    path
        The file, plain or gzip (recognised by its content).
    format
        One of `FORMATS`; "auto" tells it from the first line.
    columns
        Names of the columns of any other file: ``Columns`` of a CSV file, or, of any file, column by quantity as in
        `lbopt.instances.router_log.read_router_log`, such as ``{"prompt": "usage.in"}``.
    unit
        Of the arrival times, "s", "ms", "us" or "ns"; by default that of the format, unless the values contradict it.
    skip_malformed
        Leave out rows that cannot be used, and count them, instead of refusing the file.
    name
        What to call the trace; the file's name by default.
    """
    return read(path, format, columns, unit=unit, skip_malformed=skip_malformed, name=name).trace


def read(
    path: str | os.PathLike[str],
    format: str = "auto",
    columns: Columns | Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    skip_malformed: bool = False,
    name: str | None = None,
) -> Reading:
    """Read a trace, and return it with the format that was found and the number of rows moved into time order.

    Parameters
    ----------
    format
        A name from `FORMATS`; "auto" recognises it by the content.
    columns
        As in `read_trace`.
    unit
        As in `read_trace`.
    skip_malformed
        Whether malformed rows are left out and counted; otherwise the first raises.
    name
        Name of the trace; None takes that of the file.
    """
    if format not in FORMATS:
        raise InputError(f"no trace format {format!r}; expected {', '.join(FORMATS)}{did_you_mean(format, FORMATS)}")
    if columns is not None and format not in ("auto", "csv"):
        raise InputError(f"columns can be named only for the format csv; the format given is {format!r}")
    if columns is None and format == "csv":
        raise InputError("the format csv needs the names of the columns that hold prompt and output tokens")
    if unit is not None and unit not in SECONDS:
        raise InputError(f"no unit of time {unit!r}; expected {', '.join(SECONDS)}")
    source = os.fspath(path)
    fixed = isinstance(columns, Columns) or format != "auto"
    if starts_with(path, b"PAR1") or isinstance(columns, Mapping):
        return _by_names(path, columns, unit, name, skip_malformed=skip_malformed)
    contents = open_contents(path)
    if not fixed and (fault := _unknown(contents, source)) is not None:
        try:
            return _by_names(path, {}, unit, name, skip_malformed=skip_malformed)
        except InputError:
            contents.blocks.check()
            if SERVEGEN_CLIENT in str(fault):
                raise fault from None
            raise
    try:
        if isinstance(columns, Columns):
            kind: Literal["CSV", "JSON"] = "JSON" if contents.head.lstrip().startswith((b"{", b"[")) else "CSV"
            format = kind.lower()
            chosen = Format(kind, kind, columns, "number" if columns.arrival is None else "auto", unit=None)
        else:
            detected = format == "auto"
            format = detect(contents.head, source) if detected else format
            chosen = replace(TABLE[format], detected=detected)
        rows = read_rows(contents, chosen, source, skip_malformed=skip_malformed, unit=unit)
    except InputError:
        contents.blocks.check()  # what is wrong with the file as a whole goes before what is wrong with a row
        raise
    return assemble(rows, source=source, name=name or _stem(path), format=format)


def _unknown(contents: Contents, source: str) -> InputError | None:
    """Return why a file is of no known format, None where it is of one."""
    try:
        found = detect(contents.head, source)
    except InputError as fault:
        return fault
    if found == "lengths" and b'"input_length"' not in contents.head:
        return InputError(f"{source} has no input_length")
    return None


def _by_names(
    path: str | os.PathLike[str],
    columns: Columns | Mapping[str, str] | None,
    unit: str | None,
    name: str | None,
    *,
    skip_malformed: bool,
) -> Reading:
    """Read a file by the recogniser of logs: the parameters are those of `read`."""
    from lbopt.instances.router_log.requests import read_requests  # it reads through this package itself

    if isinstance(columns, Columns):
        columns = {key: value for key, value in asdict(columns).items() if value is not None}
    found = read_requests(path, columns or {}, unit, skip_malformed=skip_malformed)
    reading = assemble(found.rows, source=os.fspath(path), name=name or _stem(path), format=found.format)
    return replace(reading, columns=found.columns)


def _stem(path: str | os.PathLike[str]) -> str:
    stem = Path(path).name.removesuffix(".gz")
    return stem.rsplit(".", 1)[0] or stem
