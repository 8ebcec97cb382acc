"""From a file to its rows, and from rows to a checked trace, with an account of what was left out and what was moved.

Files without any fault are read fast where they are CSV (`fast_csv`); row by row is the definition of what is accepted,
and the one that can name the line.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import csv_records, listed, shown, without_blank_end
from lbopt.instances.readers.formats import Clock, Contents, Format, Layout, header_of, locate
from lbopt.instances.readers.values import (
    BAD,
    DateColumn,
    RowFault,
    field_of,
    is_blank,
    parse,
    relative_seconds,
    seconds,
    tokens,
)
from lbopt.model.trace import RequestPrefixes, Trace

NO_OUTPUT = "no output tokens"
MALFORMED = "malformed"

LONGEST_LINE = 2**22
#: Numbers of blocks are below this.
LARGEST_HASH = 2**62

logger = logging.getLogger(__name__)

#: A row: the number of its line or its place in a list, and its fields, by name or in the order of the header, or what
#: is wrong with it.
Record = tuple[int, Any]

_WHERE = {"CSV": "line {}", "JSON lines": "line {}", "JSON": "data[{}]"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """What one reader found, in file order.

    Parameters
    ----------
    prompt, output
        int64, (N,): tokens; outputs of 0 are still here.
    arrival
        float64, (N,): seconds, in file order; None where the source has no times.
    malformed
        Rows that were skipped because they cannot be used.
    prefixes
        Blocks of the prompts; None where the source does not tell them for every row.
    """

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    arrival: NDArray[np.float64] | None
    malformed: int = 0
    prefixes: RequestPrefixes | None = None


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
    """

    trace: Trace
    format: str
    reordered: int = 0


def read_rows(contents: Contents, format: Format, source: str, *, skip_malformed: bool) -> Rows:
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
    """
    if format.kind != "CSV":
        records = _json_lines(contents.blocks) if format.kind == "JSON lines" else _listed(contents.blocks, source)
        return by_row(records, format.columns.named, format, source, skip_malformed=skip_malformed)
    from lbopt.instances.readers.fast_csv import read_clean_csv

    layout = locate(header_of(contents.head, source), format.columns, format.clock, source)
    if layout.clock == "auto":
        layout = replace(layout, clock=_clock_of_first_row(contents.blocks, layout, source))
    rows = read_clean_csv(contents.blocks, layout)
    if rows is None:
        format, records = replace(format, clock=layout.clock), csv_rows(contents.blocks, layout, source)
        rows = by_row(records, layout.places, format, source, skip_malformed=skip_malformed)
    return rows


def by_row(
    records: Iterable[Record], keys: Sequence[Any], format: Format, source: str, *, skip_malformed: bool
) -> Rows:
    """Return the rows of a file one by one, and name the first that cannot be used (or skip and count them all).

    Parameters
    ----------
    keys
        By which a row gives its prompt, output and arrival: names of fields, or places of columns.
    """
    prompt, output, clock = array("q"), array("q"), array("d")
    blocks, counts, all_tell = array("q"), array("q"), format.hashes is not None
    names, malformed = format.columns, 0
    dates = DateColumn() if names.arrival is not None and format.clock == "date-time" else None
    per_second = 1000.0 if format.clock == "milliseconds" else 1.0
    for place, record in records:
        try:
            try:
                cells = [record[key] for key in keys]
            except (KeyError, TypeError):  # a fault instead of a row, no object, or one without a field
                cells = [field_of(record, key) for key in keys]
            request = tokens(names.prompt, cells[0])
            answer = 0 if is_blank(cells[1]) else tokens(names.output, cells[1])
            if names.arrival is not None and dates is None:
                clock.append(seconds(names.arrival, cells[2], unit=format.clock) / per_second)
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, {_WHERE[format.kind].format(place)}: {fault}") from None
            malformed += 1
            continue
        if dates is not None:
            dates.add(place, cells[2].strip())
        prompt.append(request)
        output.append(answer)
        hashes = _hashes(record[format.hashes]) if all_tell and format.hashes in record else None
        all_tell = hashes is not None
        if hashes is not None:
            blocks.extend(hashes)
            counts.append(len(hashes))
    rows = Rows(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        arrival=None if names.arrival is None or dates is not None else np.array(clock, dtype=np.float64),
        malformed=malformed,
        prefixes=_prefixes(blocks, counts, format.block_tokens) if all_tell and prompt else None,
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
                seconds("", record[layout.arrival])
            except RowFault:
                return "date-time"
            break
    return "seconds"


def _json_lines(text: Iterable[bytes]) -> Iterator[Record]:
    """Yield the value of each line; blank ones at the end are none."""
    number = 0
    for block in without_blank_end(text):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                yield number, _value(line)
            except RowFault as fault:
                yield number, fault


def _value(line: bytes) -> Any:
    if not line.strip():
        raise RowFault("an empty line between rows; expected a JSON object")
    if len(line) > LONGEST_LINE:
        raise RowFault(f"{len(line):,} bytes; expected a JSON object of at most {LONGEST_LINE:,}")
    return parse(line)


def _listed(text: Iterable[bytes], source: str) -> Iterator[Record]:
    """Yield the objects in the list "data" of a document, counted from 0."""
    try:
        document = parse(b"".join(text))
    except RowFault as fault:
        raise InputError(f"{source}: {fault}") from None
    records = document.get("data") if isinstance(document, dict) else None
    if not isinstance(records, list):
        found = f"the fields {listed(document)}" if isinstance(document, dict) else shown(document)
        raise InputError(f'{source} holds {found}; expected {{"data": [{{"input_length", "output_length"}}, ...]}}')
    yield from enumerate(records)


def _hashes(value: Any) -> list[int] | None:
    """Return the numbers of a list of whole numbers; None where it is something else."""
    if not isinstance(value, list):
        return None
    whole = all(type(one) is int and 0 <= one < LARGEST_HASH for one in value)
    return value if whole else None


def _prefixes(blocks: array[int], counts: array[int], block_tokens: int) -> RequestPrefixes:
    first = np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))])
    return RequestPrefixes(block_tokens=block_tokens, first=first, blocks=np.array(blocks, dtype=np.int64))


def assemble(rows: Rows, *, source: str, name: str, format: str) -> Reading:
    """Leave out requests without output, put the others in time order, and say so.

    Parameters
    ----------
    name, format
        Name of the trace, and the format that was read.
    """
    left_out = {}
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
    return Reading(trace=trace, format=format, reordered=reordered)
