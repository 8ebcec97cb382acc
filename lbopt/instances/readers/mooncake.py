"""Mooncake traces: one JSON object a line with ``timestamp`` (ms), ``input_length``, ``output_length``, ``hash_ids``.

Each hash names a block of 512 tokens of the prompt together with all before it. Where some row has none, or ones that
are no whole numbers, the trace has no prefixes.
Source: github.com/kvcache-ai/Mooncake, FAST25-release (Apache 2.0).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import without_blank_end
from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.faults import RowFault, seconds
from lbopt.instances.readers.json_values import field, lengths, parse
from lbopt.instances.readers.rows import Rows
from lbopt.model.request_prefixes import RequestPrefixes

LONGEST_LINE = 2**22
#: Tokens that a hash stands for.
BLOCK_TOKENS = 512
#: Numbers of blocks are below this.
LARGEST_HASH = 2**62


def read_mooncake(contents: Contents, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of a Mooncake file; `source` is its name in error messages."""
    prompt, output, clock = array("q"), array("q"), array("d")
    blocks, counts, all_tell = array("q"), array("q"), True
    malformed = 0
    for number, line in enumerate(_lines(contents.blocks), start=1):
        try:
            request, answer, milliseconds, hashes = _row(line)
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, line {number}: {fault}") from None
            malformed += 1
            continue
        prompt.append(request)
        output.append(answer)
        clock.append(milliseconds / 1000.0)
        all_tell = all_tell and hashes is not None
        if hashes is not None and all_tell:
            blocks.extend(hashes)
            counts.append(len(hashes))
    return Rows(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        arrival=np.array(clock, dtype=np.float64),
        malformed=malformed,
        prefixes=_prefixes(blocks, counts) if all_tell and prompt else None,
    )


def _prefixes(blocks: array[int], counts: array[int]) -> RequestPrefixes:
    first = np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))])
    return RequestPrefixes(block_tokens=BLOCK_TOKENS, first=first, blocks=np.array(blocks, dtype=np.int64))


def _lines(text: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines without their ends; blank ones at the end are none."""
    for block in without_blank_end(text):
        yield from block.removesuffix(b"\n").split(b"\n")


def _row(line: bytes) -> tuple[int, int, float, list[int] | None]:
    if not line.strip():
        raise RowFault("an empty line between rows; expected a JSON object")
    if len(line) > LONGEST_LINE:
        raise RowFault(f"{len(line):,} bytes; expected a JSON object of at most {LONGEST_LINE:,}")
    record = parse(line)
    milliseconds = seconds("timestamp", field(record, "timestamp"), unit="milliseconds")
    return *lengths(record), milliseconds, _hashes(record.get("hash_ids"))


def _hashes(value: Any) -> list[int] | None:
    """Return the numbers of a list of whole numbers; None where it is something else."""
    if not isinstance(value, list):
        return None
    whole = all(type(one) is int and 0 <= one < LARGEST_HASH for one in value)
    return value if whole else None
