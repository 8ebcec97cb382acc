"""Columns of text as what they hold: tokens, workers, times and durations with their units, or a refusal."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS
from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.readers.values import BAD, LARGEST_TOKENS, nanoseconds
from lbopt.instances.router_log.guess import (
    IS_DATE,
    Choice,
    Chooser,
    coded,
    comma_of_counts,
    comma_of_times,
    missing_cells,
    read_numbers,
)

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FARTHEST = 9e18

#: Seconds since 1970 of the years 2000 and 2100: a number between them, in some unit, is a time of day.
EPOCH = (946_684_800.0, 4_102_444_800.0)

#: Seconds of a year: numbers that spread farther count from the start of a machine, and not from 1970.
LONGEST_LOG = 366 * 86_400.0


def read_counts(chooser: Chooser, choice: Choice) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return int64 (N,) tokens, 0 where the cell holds nothing, and bool (N,) where that is so; several are added."""
    if len(choice.names) > 1:
        counts, missing = zip(*(read_counts(chooser, Choice((name,))) for name in choice.names), strict=True)
        return np.sum(counts, axis=0), np.all(missing, axis=0)
    table, texts = chooser.table, chooser.texts(choice)
    numbers = read_numbers(texts, comma=comma_of_counts(texts))
    there = ~numbers.missing & ~numbers.bad
    values = np.where(there, numbers.real, 0.0)
    bad = numbers.bad | (values < 0) | (values != np.floor(values)) | (values > LARGEST_TOKENS)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{table.where(row)}: {choice.name} is {shown(texts[row])}; expected a whole number of tokens, 0 or more"
            f"{table.hint_at(row)}"
        )
    return values.astype(np.int64), numbers.missing


def read_workers(chooser: Chooser, choice: Choice) -> tuple[NDArray[np.int64], tuple[str, ...], NDArray[np.bool_]]:
    """Return int64 (N,) workers (-1 where the cell holds nothing), their names, and bool (N,) where nothing is."""
    texts = [text.strip() for text in chooser.texts(choice)]
    missing = missing_cells(texts)
    names, codes = coded([text for text, gone in zip(texts, missing, strict=True) if not gone])
    if all(re.fullmatch(r"\d+\.0", name) for name in names):  # a column of whole numbers with an empty cell in pandas
        names = [name[:-2] for name in names]
    order = sorted(range(len(names)), key=lambda index: natural(names[index]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    worker = np.full(len(texts), -1, dtype=np.int64)
    worker[~missing] = rank[codes]
    return worker, tuple(names[index] for index in order), missing


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts dp2 before dp10."""
    parts = re.findall(r"\d+|\D+", name)
    # Digits without leading zeros compare like numbers by their count and then as text, however many they are.
    bare = ((part.lstrip("0"), part) for part in parts)
    return tuple((0, len(digits), digits) if part.isdecimal() else (1, 0, part) for digits, part in bare)


@dataclass(slots=True, kw_only=True, eq=False)
class Clock:
    """A column of times or durations.

    Parameters
    ----------
    name
        The column.
    raw
        float64 (N,), as written, NaN where nothing is; of date-times nanoseconds since 1970.
    exact
        int64 (N,), the same where all are whole numbers (0 where nothing is), else None.
    unit
        "s", "ms", "us", "ns" or "date-time"; None until it is known.
    said
        What told the unit: "name", "epoch", "option", "content" or "".
    given
        Whether an option named the column.
    """

    name: str
    raw: NDArray[np.float64]
    exact: NDArray[np.int64] | None
    unit: str | None
    said: str = ""
    given: bool = False

    def nanoseconds(self) -> NDArray[np.int64]:
        """Return int64 (N,), the times in nanoseconds, `BAD` where nothing is."""
        assert self.unit is not None
        scale = 1 if self.unit == "date-time" else _NANOSECONDS[self.unit]
        there = ~np.isnan(self.raw)
        if there.any() and np.abs(self.raw[there]).max() > _FARTHEST / scale:
            raise InputError(f"column {self.name!r} in {self.unit} lies beyond any calendar; name the unit with unit=")
        times = np.full(self.raw.size, BAD, dtype=np.int64)
        if self.exact is not None:
            times[there] = self.exact[there] * scale
        else:
            whole = np.floor(self.raw[there])
            part = np.rint((self.raw[there] - whole) * scale).astype(np.int64)
            times[there] = whole.astype(np.int64) * scale + part
        return times

    def seconds(self) -> NDArray[np.float64]:
        """Return float64 (N,), the durations in seconds, NaN where nothing is."""
        assert self.unit is not None
        return self.raw * SECONDS[self.unit]


def read_clock(chooser: Chooser, choice: Choice, quantity: str, *, absolute: bool) -> Clock:
    """Return the column of a quantity, of times (`absolute`) or of durations."""
    table, texts = chooser.table, chooser.texts(choice)
    missing = missing_cells(texts)
    first = next((text for text, gone in zip(texts, missing, strict=True) if not gone), "")
    if absolute and IS_DATE.fullmatch(first):
        exact = np.zeros(len(texts), dtype=np.int64)
        exact[~missing] = nanoseconds([_iso(text) for text, gone in zip(texts, missing, strict=True) if not gone])
        bad, expected = exact == BAD, "a date-time such as 2025-11-16T18:15:46.680Z"
        raw = np.where(missing | bad, np.nan, exact)
        clock = Clock(name=choice.name, raw=raw, exact=exact, unit="date-time", given=choice.given)
    else:
        unit = chooser.unit_of(choice, quantity)
        numbers = read_numbers(texts, comma=comma_of_times(texts, unit))
        bad = numbers.bad | (np.abs(numbers.real) > _FARTHEST)
        expected = "a time" if absolute else "a duration"
        clock = Clock(
            name=choice.name,
            raw=numbers.real,
            exact=numbers.whole,
            unit=unit,
            said="name" if unit else "",
            given=choice.given,
        )
        if not absolute and not bad.any():
            bad, expected = numbers.real < 0, "a duration, 0 or more"
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{table.where(row)}: {choice.name} is {shown(texts[row])}; expected {expected}{table.hint_at(row)}"
        )
    return clock


def epoch_unit(raw: NDArray[np.float64]) -> str | None:
    """Return the unit in which some times are dates of this century, within `LONGEST_LOG` of one another, or None."""
    if np.isnan(raw).all():
        return None
    low, middle, high = (float(value) for value in np.nanquantile(raw, [0.05, 0.5, 0.95]))
    for unit, size in SECONDS.items():
        if EPOCH[0] <= middle * size <= EPOCH[1] and (high - low) * size <= LONGEST_LOG:
            return unit
    return None


def _iso(text: str) -> str:
    text = text.strip().replace(",", ".")
    if text.endswith(("UTC", "GMT")):
        text = text[:-3].rstrip()
        text = text if text[-5:-4] in "+-" else f"{text}Z"
        text = text.replace(" +", "+")
    return text
