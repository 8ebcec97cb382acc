"""What one value of a row may hold, and what can be wrong with it, to be put after a file's name and a line.

The parsers here are the definition of what a trace may hold; the fast reader accepts only what they accept. Date-times
are read a column at once and kept to the nanosecond until they are differences.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS, UNITS
from lbopt.files import JsonFault, json_value, listed, shown

#: A request of more tokens than this is a damaged row, and 10**9 of them still fit the exact totals of the model.
LARGEST_TOKENS = 10**9

#: Seconds; times since 1970 in seconds stay far below, the same times in milliseconds lie above.
LARGEST_SECONDS = 1e12

#: Seconds since 1970 of the years 2000 and 2100: a number between them, in some unit, is a time of day.
EPOCH = (946_684_800.0, 4_102_444_800.0)

#: Nanoseconds that stand for "not a date-time" (pandas' NaT).
BAD = np.iinfo(np.int64).min

#: Fields that hold prompts as text.
_TEXTS = {"text_input", "messages", "turns"}

#: Texts that `DateColumn` holds before it converts them.
_AT_ONCE = 100_000


class RowFault(ValueError):
    """One row cannot be used; the reader adds the file and the line, or leaves the row out if asked to."""


def tokens(name: str, value: Any) -> int:
    """Return a number of tokens from text or a JSON value: a whole number from 0 to `LARGEST_TOKENS`."""
    count = _whole(value)
    if count is None:
        raise RowFault(f"{name} is {shown(value)}; expected a whole number of tokens, 0 or more")
    if count > LARGEST_TOKENS:
        raise RowFault(f"{name} is {shown(value)}; expected at most {LARGEST_TOKENS:,} tokens")
    return count


def seconds(name: str, value: Any, *, unit: str = "s", latest: float | None = None) -> float:
    """Return a time from text or a JSON value: a finite number, 0 or more, in the unit given.

    Parameters
    ----------
    latest
        Largest number; by default `LARGEST_SECONDS` in that unit.
    """
    number = _real(value)
    if number is None or not math.isfinite(number) or number < 0:
        raise RowFault(f"{name} is {shown(value)}; expected a time in {UNITS[unit][-1]}, 0 or more")
    if number > (LARGEST_SECONDS / SECONDS[unit] if latest is None else latest):
        raise RowFault(f"{name} is {shown(value)}; expected {UNITS[unit][-1]}, and this many lie beyond any calendar")
    return number


def is_blank(value: Any) -> bool:
    """Tell whether a field is there but holds nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) <= 18:
            return int(text)
    elif isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    number = _real(value)  # "472.0" is what a table with one empty cell becomes when pandas writes it
    if number is None or not math.isfinite(number) or number < 0 or number != math.floor(number):
        return None
    return int(number)


def _real(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and ("_" in value or not value.isascii()):  # Python's own spellings, not a file's
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise RowFault saying what is wrong with it."""
    try:
        return json_value(text if isinstance(text, str) else text.decode())
    except JsonFault as fault:
        raise RowFault(str(fault)) from None


def field_of(record: Any, name: str, otherwise: str = "") -> Any:
    """Return one field of a JSON object, or raise RowFault saying what is there; a fault itself is raised.

    Parameters
    ----------
    otherwise
        What to do about a missing field, unless the record holds text.
    """
    if isinstance(record, RowFault):
        raise record
    if not isinstance(record, dict):
        raise RowFault(f"{shown(record)} is no JSON object; expected one with input_length and output_length")
    if name not in record:
        way_out = "; text has to be counted in tokens first" if _TEXTS & set(record) else otherwise
        raise RowFault(f"no field {name!r}; it has {listed(record)}{way_out}")
    return record[name]


def nanoseconds(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return nanoseconds since 1970 (UTC) of ISO 8601 date-times; `BAD` where a text is none.

    A text without a zone counts as UTC, as in the Azure trace of 2023; seven and more digits of a second are kept.
    """
    import pandas as pd

    column = pd.Series(texts, dtype=object)
    # pandas also reads "now", "today" and "NaT": only what starts with a digit is a date-time in a file. The smallest
    # and the largest text tell whether all do; the readable line beside it is the mask.
    if column.min() < "0" or column.max() >= ":":
        column = column.where(column.str.match("[0-9]"), "")
    times = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    outside = (times < pd.Timestamp("1678-01-01", tz="UTC")) | (times > pd.Timestamp("2261-12-31", tz="UTC"))
    if outside.any():  # beyond the range of int64 nanoseconds
        times = times.mask(outside)
    values = times.dt.as_unit("ns").dt.tz_localize(None).to_numpy(dtype="datetime64[ns]").astype(np.int64)
    return np.asarray(values, dtype=np.int64)


class DateColumn:
    """Date-times that come one by one; their texts are dropped some thousands at a time."""

    def __init__(self) -> None:
        self.first_bad: tuple[int, str] | None = None
        self._lines: list[int] = []
        self._texts: list[str] = []
        self._times = array("q")

    def add(self, line: int, text: str) -> None:
        """Take the text of a row."""
        self._lines.append(line)
        self._texts.append(text)
        if len(self._texts) >= _AT_ONCE:
            self._convert()

    def nanoseconds(self) -> NDArray[np.int64]:
        """Return what the function `nanoseconds` gives for all; `first_bad` is then line and text of the first bad."""
        self._convert()
        return np.array(self._times, dtype=np.int64)

    def _convert(self) -> None:
        if not self._texts:
            return
        times = nanoseconds(self._texts)
        bad = times == BAD
        if self.first_bad is None and bad.any():
            first = int(np.argmax(bad))
            self.first_bad = self._lines[first], self._texts[first]
        self._times.frombytes(times.tobytes())
        self._lines.clear()
        self._texts.clear()


def relative_seconds(times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return seconds since the earliest; the difference is taken in integers, so that 100 ns survive."""
    return np.asarray((times - times.min()) / 1e9, dtype=np.float64) if times.size else times.astype(np.float64)
