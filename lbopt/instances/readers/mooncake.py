"""Mooncake traces: one JSON object a line with ``timestamp`` (ms), ``input_length``, ``output_length``, ``hash_ids``.

The hashes of prefix blocks are passed over: lbopt balances tokens that are resident, whether or not they were cached.
Source: github.com/kvcache-ai/Mooncake, FAST25-release (Apache 2.0).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import without_blank_end
from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.faults import RowFault, seconds
from lbopt.instances.readers.json_values import field, lengths, parse
from lbopt.instances.readers.rows import Rows

LONGEST_LINE = 2**22


def read_mooncake(contents: Contents, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of a Mooncake file; `source` is its name in error messages."""
    prompt, output, clock = array("q"), array("q"), array("d")
    malformed = 0
    for number, line in enumerate(_lines(contents.blocks), start=1):
        try:
            request, answer, milliseconds = _row(line)
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, line {number}: {fault}") from None
            malformed += 1
            continue
        prompt.append(request)
        output.append(answer)
        clock.append(milliseconds / 1000.0)
    return Rows(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        arrival=np.array(clock, dtype=np.float64),
        malformed=malformed,
    )


def _lines(text: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines without their ends; blank ones at the end are none."""
    for block in without_blank_end(text):
        yield from block.removesuffix(b"\n").split(b"\n")


def _row(line: bytes) -> tuple[int, int, float]:
    if not line.strip():
        raise RowFault("an empty line between rows; expected a JSON object")
    if len(line) > LONGEST_LINE:
        raise RowFault(f"{len(line):,} bytes; expected a JSON object of at most {LONGEST_LINE:,}")
    record = parse(line)
    milliseconds = seconds("timestamp", field(record, "timestamp"), unit="milliseconds")
    return *lengths(record), milliseconds
