"""From a file to its rows, and from rows to a checked trace, with an account of what was left out and what was moved.

Files without any fault are read fast where they are CSV (`fast_csv`); row by row is the definition of what is accepted,
and the one that can name the line.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lbopt.columns import SECONDS, unit_in
from lbopt.exceptions import InputError
from lbopt.files import csv_records, listed, shown, without_blank_end
from lbopt.instances.readers.formats import Clock, Contents, Format, Layout, adapted, header_of, locate
from lbopt.instances.readers.json_rows import json_rows
from lbopt.instances.readers.records import DATES, LINE, OPEN_END, Record, Rows, lengths
from lbopt.instances.readers.units import in_seconds, unit_of
from lbopt.instances.readers.values import BAD, DateColumn, RowFault, relative_seconds, seconds
from lbopt.model.trace import Trace

NO_OUTPUT = "no output tokens"
MALFORMED = "malformed"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A trace together with how it was read.

    Parameters
    ----------
    trace
        The requests; `trace.left_out` says which rows of the file are not here.
    format
        The format that the file was read as.
    reordered
        Rows that stood in the file after a later one, and were moved to their place in time.
    unit, later
        As of `Rows`.
    columns
        Column by quantity, where names were recognised and not the format.
    notes
        Sentences about what of the file was not read.
    """

    trace: Trace
    format: str
    reordered: int = 0
    unit: str = ""
    later: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_rows(
    contents: Contents, format: Format, source: str, *, skip_malformed: bool, unit: str | None = None
) -> Rows:
    """Return the rows of a file.

    Parameters
    ----------
    contents
        The file.
    format
        Where they are and what their fields are called.
    source
        Name of the file in error messages.
    skip_malformed
        Whether malformed rows are left out and counted; otherwise the first raises.
    unit
        Of the times, s, ms, us or ns; None: what the format says, unless the values contradict it (`units`).
    """
    if format.kind == "JSON":
        format = adapted(format, contents.head)
        rows = json_rows(contents, format, source, skip_malformed=skip_malformed)
    else:
        rows = _csv_rows(contents, format, source, skip_malformed=skip_malformed)
    if rows.arrival is None or format.columns.arrival is None or rows.unit == DATES:
        return replace(rows, unit="")
    if not rows.arrival.size:
        return rows
    name, told = format.columns.arrival, unit_in(format.columns.arrival)
    said = format.unit or told
    if unit is None and rows.unit in SECONDS:  # the file says it itself
        unit = rows.unit
    if unit is None:
        unit = said or "s"
        if not format.certain:
            unit = unit_of(rows.arrival, unit, name, source, guessed=said is None, named=told is not None)
    return replace(rows, arrival=in_seconds(rows.arrival, unit, name, source), unit=unit)


def _csv_rows(contents: Contents, format: Format, source: str, *, skip_malformed: bool) -> Rows:
    from lbopt.instances.readers.fast_csv import read_clean_csv

    layout = replace(
        locate(header_of(contents.head, source), format.columns, format.clock, source), latest=format.latest
    )
    if layout.clock == "auto":
        layout = replace(layout, clock=_clock_of_first_row(contents.blocks, layout, source))
    end = b""

    def watched() -> Iterator[bytes]:
        nonlocal end
        for block in contents.blocks:
            end = block[-1:]
            yield block

    rows = read_clean_csv(watched(), layout)
    if rows is None:
        format, records = replace(format, clock=layout.clock), csv_rows(watched(), layout, source)
        rows = by_row(records, layout.places, format, source, skip_malformed=skip_malformed)
    notes = (OPEN_END,) if end.isdigit() or end == b"," else ()
    return replace(rows, unit=DATES if layout.clock == "date-time" else "", notes=notes)


def by_row(
    records: Iterable[Record], keys: Sequence[Any], format: Format, source: str, *, skip_malformed: bool
) -> Rows:
    """Return the rows of a CSV file one by one, and name the first that cannot be used (or skip and count them all).

    Parameters
    ----------
    keys
        Places of the columns of prompt, output and arrival.
    """
    prompt, output, clock = array("q"), array("q"), array("d")
    names, malformed = format.columns, 0
    dates = DateColumn() if names.arrival is not None and format.clock == "date-time" else None
    for place, record in records:
        try:
            if isinstance(record, RowFault):
                raise record
            request, answer = lengths(names, *(record[key] for key in keys[:2]))
            if names.arrival is not None and dates is None:
                clock.append(seconds(names.arrival, record[keys[2]], unit=format.unit or "s", latest=format.latest))
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, {LINE.format(place)}: {fault}") from None
            malformed += 1
            continue
        if dates is not None:
            dates.add(place, record[keys[2]].strip())
        prompt.append(request)
        output.append(answer)
    rows = Rows(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        arrival=None if names.arrival is None or dates is not None else np.array(clock, dtype=np.float64),
        malformed=malformed,
    )
    return rows if dates is None else _dated(rows, dates, f"{names.arrival}", source, skip_malformed=skip_malformed)


def _dated(rows: Rows, dates: DateColumn, name: str, source: str, *, skip_malformed: bool) -> Rows:
    """Return rows with the times that a column of date-times says, without those where it says none."""
    times = dates.nanoseconds()
    if dates.first_bad is not None and not skip_malformed:
        line, found = dates.first_bad
        raise InputError(
            f"{source}, line {line}: {name} is {shown(found)}; expected a date-time such as 2023-11-16 18:15:46.6805900"
        )
    good = times != BAD
    return Rows(
        prompt=rows.prompt[good],
        output=rows.output[good],
        arrival=relative_seconds(times[good]),
        malformed=rows.malformed + int(np.count_nonzero(~good)),
    )


def csv_rows(text: Iterable[bytes], layout: Layout, source: str) -> Iterator[Record]:
    """Yield each row below the header of a CSV file; trailing blank lines are none."""
    records = csv_records(without_blank_end(block.decode() for block in text), source)
    next(records)
    width = len(layout.header)
    for line, row in records:
        yield line, row if len(row) == width else RowFault(_wrong_width(row, layout.header))


def _wrong_width(row: list[str], header: tuple[str, ...]) -> str:
    if not row:
        return f"an empty line between rows; expected {len(header)} fields"
    found = "1 field" if len(row) == 1 else f"{len(row)} fields"
    return f"{found}; expected {len(header)} ({listed(header)})"


def _clock_of_first_row(text: Iterable[bytes], layout: Layout, source: str) -> Clock:
    assert layout.arrival is not None
    for _, record in csv_rows(text, layout, source):
        if not isinstance(record, RowFault):
            try:
                seconds("", record[layout.arrival], latest=layout.latest)
            except RowFault:
                return "date-time"
            break
    return "number"


def assemble(rows: Rows, *, source: str, name: str, format: str) -> Reading:
    """Leave out requests without output, put the others in time order, and say so.

    Parameters
    ----------
    name, format
        Name of the trace, and the format that was read.
    """
    left_out = dict(rows.left_out)
    if rows.malformed:
        left_out[MALFORMED] = rows.malformed
    kept = rows.output > 0
    if not kept.all():
        left_out[NO_OUTPUT] = int(kept.size - np.count_nonzero(kept))
    if not kept.any():
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "no rows below the header"
        raise InputError(f"{source} holds no request that runs a decode step ({reasons}); expected at least one")
    for reason, count in left_out.items():
        logger.warning("%s: %d rows left out (%s)", source, count, reason)

    prompt, output, arrival, prefixes = rows.prompt, rows.output, rows.arrival, rows.prefixes
    if NO_OUTPUT in left_out:
        prompt, output, arrival = prompt[kept], output[kept], None if arrival is None else arrival[kept]
        prefixes = None if prefixes is None else prefixes.of_requests(kept)
    reordered = 0
    if arrival is not None:
        reordered = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
        if reordered:
            order = np.argsort(arrival, kind="stable")
            prompt, output, arrival = prompt[order], output[order], arrival[order]
            prefixes = None if prefixes is None else prefixes.of_requests(order)
            logger.warning("%s: %d rows were out of time order; sorted by arrival", source, reordered)
    for column in (prompt, output):
        column.flags.writeable = False  # the trace keeps them as they are
    trace = Trace(prompt=prompt, output=output, arrival=arrival, name=name, left_out=left_out, prefixes=prefixes)
    for note in rows.notes:
        logger.warning("%s: %s", source, note)
    return Reading(trace=trace, format=format, reordered=reordered, unit=rows.unit, later=rows.later, notes=rows.notes)
