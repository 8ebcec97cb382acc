"""Date-times of a whole column at once, kept to the nanosecond until they are differences."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Nanoseconds that stand for "not a date-time" (pandas' NaT).
BAD = np.iinfo(np.int64).min

#: Texts that `DateColumn` holds before it converts them.
_AT_ONCE = 100_000


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
        """Take the text of a line."""
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
