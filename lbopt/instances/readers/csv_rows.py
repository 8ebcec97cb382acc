"""Read a CSV file row by row: the definition of what is accepted, and the one that can name the line.

`read_csv` tries the fast reader first, which accepts only files without any fault and then gives the same rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import csv_records, listed, shown, without_blank_end
from lbopt.instances.readers.date_times import BAD, DateColumn, relative_seconds
from lbopt.instances.readers.faults import RowFault, is_blank, seconds, tokens
from lbopt.instances.readers.layout import Clock, Layout
from lbopt.instances.readers.rows import Rows


def read_csv(text: Iterable[bytes], layout: Layout, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows below the header.

    Parameters
    ----------
    text
        The file, in blocks that end with a line feed, but for the last; it is iterated over more than once.
    layout
        Where the columns are.
    source
        Name of the file in error messages.
    skip_malformed
        Whether malformed rows are left out and counted.
    """
    from lbopt.instances.readers.fast_csv import read_clean_csv

    if layout.clock == "auto":
        layout = replace(layout, clock=_clock_of_first_row(text, layout, source))
    rows = read_clean_csv(text, layout)
    return read_csv_by_row(text, layout, source, skip_malformed=skip_malformed) if rows is None else rows


def read_csv_by_row(text: Iterable[bytes], layout: Layout, source: str, *, skip_malformed: bool) -> Rows:
    """Do the same, slowly, and name the first row that cannot be used (or skip and count them all).

    Parameters
    ----------
    text, layout, source, skip_malformed
        As in `read_csv`.
    """
    prompt, output, clock = array("q"), array("q"), array("d")
    dates = DateColumn() if layout.arrival is not None and layout.clock == "date-time" else None
    malformed = 0
    names = layout.header
    for line, row in _records(text, source):
        try:
            if len(row) != len(names):
                raise RowFault(_wrong_width(row, names))
            request = tokens(names[layout.prompt], row[layout.prompt])
            answer = 0 if is_blank(row[layout.output]) else tokens(names[layout.output], row[layout.output])
            if layout.arrival is not None and dates is None:
                clock.append(seconds(names[layout.arrival], row[layout.arrival]))
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, line {line}: {fault}") from None
            malformed += 1
            continue
        if layout.arrival is not None and dates is not None:
            dates.add(line, row[layout.arrival].strip())
        prompt.append(request)
        output.append(answer)

    prompts, outputs = np.array(prompt, dtype=np.int64), np.array(output, dtype=np.int64)
    if layout.arrival is None:
        return Rows(prompt=prompts, output=outputs, arrival=None, malformed=malformed)
    if dates is None:
        return Rows(prompt=prompts, output=outputs, arrival=np.array(clock, dtype=np.float64), malformed=malformed)
    times = dates.nanoseconds()
    if dates.first_bad is not None and not skip_malformed:
        line, found = dates.first_bad
        raise InputError(
            f"{source}, line {line}: {names[layout.arrival]} is {shown(found)}; "
            "expected a date-time such as 2023-11-16 18:15:46.6805900"
        )
    bad = times == BAD
    malformed += int(np.count_nonzero(bad))
    return Rows(prompt=prompts[~bad], output=outputs[~bad], arrival=relative_seconds(times[~bad]), malformed=malformed)


def _records(text: Iterable[bytes], source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of each row below the header; trailing blank lines are none."""
    records = csv_records(without_blank_end(block.decode() for block in text), source)
    next(records)
    yield from records


def _wrong_width(row: list[str], header: tuple[str, ...]) -> str:
    if not row:
        return f"an empty line between rows; expected {len(header)} fields"
    found = "1 field" if len(row) == 1 else f"{len(row)} fields"
    return f"{found}; expected {len(header)} ({listed(header)})"


def _clock_of_first_row(text: Iterable[bytes], layout: Layout, source: str) -> Clock:
    place = layout.arrival
    assert place is not None
    for _, row in _records(text, source):
        if len(row) == len(layout.header):
            try:
                seconds("", row[place])
            except RowFault:
                return "date-time"
            break
    return "seconds"
