"""Read a CSV file without any fault at the speed of pandas; give up at the first doubt.

Giving up (None) costs nothing but time: `csv_rows.read_csv_by_row` then reads the file and names the fault. Three
checks make the two agree: the commas and line ends of the whole file form a regular grid, so that no row is too short
or too long (pandas alone passes both over in silence); nothing is quoted; and the columns hold numbers in range.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.instances.readers.date_times import BAD, nanoseconds, relative_seconds
from lbopt.instances.readers.faults import LARGEST_SECONDS, LARGEST_TOKENS
from lbopt.instances.readers.layout import Layout
from lbopt.instances.readers.rows import Rows

_CHUNK_ROWS = 1_000_000
_BLOCK_BYTES = 2**24


def read_clean_csv(data: bytes, layout: Layout) -> Rows | None:
    """Return the rows below the header, or None where anything is out of the ordinary."""
    import csv

    import pandas as pd

    start = data.find(b"\n") + 1
    body = memoryview(data)[start : len(data.rstrip())]
    if start == 0 or not len(body) or b'"' in data or data.count(b"\r") != data.count(b"\r\n"):
        return None
    if not _is_grid(body, len(layout.header)):
        return None

    wanted = sorted({layout.prompt, layout.output, *([] if layout.arrival is None else [layout.arrival])})
    kinds: dict[int, type[object] | str] = {layout.prompt: "int64", layout.output: "int64"}
    if layout.arrival is not None:
        kinds[layout.arrival] = object
    convert: Callable[[Sequence[str]], NDArray[Any]] = _seconds if layout.clock == "seconds" else nanoseconds
    prompt, output, clock = [], [], list[NDArray[Any]]()
    try:
        # A token count such as "nan" is refused by pandas after a cast that NumPy would warn about.
        with (
            np.errstate(invalid="ignore"),
            pd.read_csv(
                io.BytesIO(body),
                header=None,
                names=list(range(len(layout.header))),
                usecols=wanted,
                dtype=kinds,
                na_filter=False,
                quoting=csv.QUOTE_NONE,
                index_col=False,
                chunksize=_CHUNK_ROWS,
            ) as chunks,
        ):
            for chunk in chunks:
                prompt.append(chunk[layout.prompt].to_numpy(dtype=np.int64))
                output.append(chunk[layout.output].to_numpy(dtype=np.int64))
                if layout.arrival is not None:
                    clock.append(convert(chunk[layout.arrival].tolist()))
    except (ValueError, OverflowError):  # not a number, or one too large
        return None
    prompts, outputs = np.concatenate(prompt), np.concatenate(output)
    if min(prompts.min(), outputs.min()) < 0 or max(prompts.max(), outputs.max()) > LARGEST_TOKENS:
        return None
    if layout.arrival is None:
        return Rows(prompt=prompts, output=outputs, arrival=None)
    times = np.concatenate(clock)
    if layout.clock == "seconds":
        in_range = bool(np.all((times >= 0) & (times <= LARGEST_SECONDS)))  # false for NaN as well
        return Rows(prompt=prompts, output=outputs, arrival=times) if in_range else None
    if (times == BAD).any():
        return None
    return Rows(prompt=prompts, output=outputs, arrival=relative_seconds(times))


def _seconds(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return numbers as Python reads them: how pandas rounds the last bit depends on its version."""
    joined = "".join(texts)
    if "_" in joined or not joined.isascii():  # spellings of Python, and of no file
        raise ValueError("not plain numbers")
    return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))


def _is_grid(body: memoryview, width: int) -> bool:
    """Tell whether every line holds exactly `width` fields, from the sequence of commas and line ends alone."""
    pending: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
    line = np.array([ord(",")] * (width - 1) + [ord("\n")], dtype=np.uint8)
    for start in range(0, len(body), _BLOCK_BYTES):
        block = np.frombuffer(body[start : start + _BLOCK_BYTES], dtype=np.uint8)
        marks = np.concatenate([pending, block[(block == ord(",")) | (block == ord("\n"))]])
        whole = marks.size // width * width
        if not (marks[:whole].reshape(-1, width) == line).all():
            return False
        pending = marks[whole:]
    return pending.size == width - 1 and bool((pending == ord(",")).all())  # the last line end is stripped
