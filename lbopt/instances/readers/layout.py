"""Which columns of a CSV file hold what, and the header line that must show them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Literal

from lbopt.exceptions import InputError
from lbopt.files import not_by_commas, shown
from lbopt.spec import did_you_mean

Clock = Literal["seconds", "date-time", "auto"]

LONGEST_LINE = 2**20


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that hold prompt tokens, output tokens and, optionally, the arrival time."""

    prompt: str
    output: str
    arrival: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the needed columns in a header, counted from 0."""

    header: tuple[str, ...]
    prompt: int
    output: int
    arrival: int | None
    clock: Clock


def header_of(data: bytes, source: str) -> tuple[str, ...]:
    """Return the column names in the first line of a CSV file."""
    end = data.find(b"\n")
    line = data if end < 0 else data[:end]
    if len(line) > LONGEST_LINE:
        raise InputError(f"{source}, line 1 has {len(line):,} bytes; expected a header line with column names")
    try:
        fields = next(csv.reader([line.decode().rstrip("\r")], strict=True))
    except (csv.Error, StopIteration) as error:
        raise InputError(f"{source}, line 1 is not a CSV header: {str(error) or 'it is empty'}") from None
    return tuple(field.strip() for field in fields)


def locate(header: tuple[str, ...], columns: Columns, clock: Clock, source: str) -> Layout:
    """Find the named columns in a header.

    Parameters
    ----------
    header
        Names of the columns.
    columns
        Names of the columns that are needed.
    clock
        How arrival times are written.
    source
        Name of the file in error messages.
    """
    wanted = [columns.prompt, columns.output, *([] if columns.arrival is None else [columns.arrival])]
    if len(set(wanted)) < len(wanted):
        raise InputError(f"prompt, output and arrival must be different columns; got {', '.join(map(repr, wanted))}")
    for name in wanted:
        if name not in header and (wrong := not_by_commas(header)):
            raise InputError(f"{source}, line 1: {wrong}")
        if name not in header:
            raise InputError(f"{source}, line 1: no column {name!r}; {_what_is_there(header, name)}")
        if header.count(name) > 1:
            raise InputError(f"{source}, line 1: {header.count(name)} columns are called {name!r}; expected one")
    places = [header.index(name) for name in wanted]
    return Layout(header, places[0], places[1], places[2] if len(places) > 2 else None, clock)


def _what_is_there(header: tuple[str, ...], wanted: str) -> str:
    names = ", ".join(shown(name) for name in header[:12]) + (", ..." if len(header) > 12 else "")
    return f"the columns are {names[:250]}{did_you_mean(wanted, header)}"
