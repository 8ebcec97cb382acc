"""Read a CSV file without any fault at the speed of pandas; give up at the first doubt.

Giving up (None) costs nothing but time: `rows.by_row` then reads the file and names the fault. Three
checks make the two agree: the commas and line ends of each block form a regular grid, so that no row is too short
or too long (pandas alone passes both over in silence); nothing is quoted; and the columns hold numbers in range.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lbopt.files import without_blank_end
from lbopt.instances.readers.formats import Layout
from lbopt.instances.readers.records import Rows
from lbopt.instances.readers.values import BAD, LARGEST_TOKENS, nanoseconds, relative_seconds

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Column:
    """Numbers of one kind, to which parts are added in place: the whole is never held twice, as where parts are joined.

    Parameters
    ----------
    kind
        Their dtype.
    """

    def __init__(self, kind: DTypeLike) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype=kind)

    def __len__(self) -> int:
        return int(self.array.size)

    def extend(self, part: NDArray[Any]) -> None:
        """Add a part, (n,), at the end; no view of `array` may be in use."""
        size = self.array.size
        self.array.resize(size + part.size, refcheck=False)  # the system moves pages, it does not copy them
        self.array[size:] = part


def read_clean_csv(text: Iterable[bytes], layout: Layout) -> Rows | None:
    """Return the rows below the header, or None where anything is out of the ordinary.

    Parameters
    ----------
    text
        The file, in blocks that end with a line feed, but for the last.
    layout
        Where the columns are.
    """
    timed = layout.arrival is not None
    prompt, output = _Column(np.int64), _Column(np.int64)
    clock = _Column(np.float64 if layout.clock == "number" else np.int64)
    below = False
    for block in without_blank_end(text):
        if b'"' in block or block.count(b"\r") != block.count(b"\r\n"):
            return None
        body = block if below else block[block.find(b"\n") + 1 or len(block) :]
        below = True
        if not body:
            continue
        columns = _columns(body, layout) if _is_grid(body, len(layout.header)) else None
        if columns is None:
            return None
        prompt.extend(columns[0])
        output.extend(columns[1])
        if timed:
            clock.extend(columns[2])
    if not len(prompt):
        return None
    times = None
    if timed:
        times = clock.array if layout.clock == "number" else relative_seconds(clock.array)
    return Rows(prompt=prompt.array, output=output.array, arrival=times)


def _columns(body: bytes, layout: Layout) -> list[NDArray[Any]] | None:
    """Return prompts, outputs and, where the layout has them, times of lines that form a grid; None at a doubt."""
    import csv

    import pandas as pd

    if body.startswith(_BYTE_ORDER_MARK):  # pandas would pass over it
        return None
    places = layout.places
    kinds: dict[int, type[object] | str] = dict(zip(places, ("int64", "int64", object), strict=False))

    def parsed(kinds: dict[int, type[object] | str]) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(body),
            header=None,
            names=list(range(len(layout.header))),
            usecols=sorted(kinds),
            dtype=kinds,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            index_col=False,
        )

    try:
        # A token count such as "nan" is refused by pandas after a cast that NumPy would warn about.
        with np.errstate(invalid="ignore"):
            table = parsed(kinds)
        columns: list[NDArray[Any]] = [table[place].to_numpy(dtype=np.int64) for place in places[:2]]
        if any(column.min() < 0 or column.max() > LARGEST_TOKENS for column in columns):
            return None
        for place, column in zip(places, columns, strict=False):  # of True and False alone, pandas makes 1 and 0
            if column.max() <= 1 and not "".join(parsed({place: object})[place]).isdigit():
                return None
        if layout.arrival is None:
            return columns
        texts = table[layout.arrival].tolist()
        times = _seconds(texts) if layout.clock == "number" else nanoseconds(texts)
    except (ValueError, OverflowError):  # not a number, or one too large
        return None
    good = (times >= 0) & (times <= layout.latest) if layout.clock == "number" else times != BAD
    return [*columns, times] if good.all() else None  # not a number is not good either


def _seconds(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return numbers as Python reads them: how pandas rounds the last bit depends on its version."""
    joined = "".join(texts)
    if "_" in joined or not joined.isascii():  # spellings of Python, and of no file
        raise ValueError("not plain numbers")
    return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))


def _is_grid(body: bytes, width: int) -> bool:
    """Tell whether every line holds exactly `width` fields, from the sequence of commas and line ends alone."""
    found = np.frombuffer(body, dtype=np.uint8)
    marks = found[(found == ord(",")) | (found == ord("\n"))]
    line = np.array([ord(",")] * (width - 1) + [ord("\n")], dtype=np.uint8)
    if not body.endswith(b"\n"):
        marks = np.append(marks, line[-1])
    return marks.size % width == 0 and bool((marks.reshape(-1, width) == line).all())
