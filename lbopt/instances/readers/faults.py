"""What can be wrong with one value of a row, said in a way that a file name and a line can be put in front of.

The parsers here are the definition of what a trace may hold; the fast reader accepts only what they accept.
"""

from __future__ import annotations

import math
from typing import Any

from lbopt.files import shown

#: A request of more tokens than this is a damaged row, and 10**9 of them still fit the exact totals of the model.
LARGEST_TOKENS = 10**9

#: Seconds; times since 1970 in seconds stay far below, the same times in milliseconds lie above.
LARGEST_SECONDS = 1e12


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


def seconds(name: str, value: Any, *, unit: str = "seconds") -> float:
    """Return a time from text or a JSON value: a finite number, 0 or more, in the unit given."""
    number = _real(value)
    if number is None or not math.isfinite(number) or number < 0:
        raise RowFault(f"{name} is {shown(value)}; expected a time in {unit}, 0 or more")
    if number > LARGEST_SECONDS * (1000 if unit == "milliseconds" else 1):
        raise RowFault(f"{name} is {shown(value)}; expected {unit}, and this many lie beyond any calendar")
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
