"""Rows of JSON: one object per line, or a list of objects, alone or under "data" in a document.

A field of times may be missing from a row (`turns`), and rows may name the blocks of their prompts (`prefixes`).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import listed, shown, without_blank_end
from lbopt.instances.readers.formats import TABLE, Contents, Format, form_of, is_document
from lbopt.instances.readers.prefixes import Blocks
from lbopt.instances.readers.records import DATES, LINE, Record, Rows, lengths
from lbopt.instances.readers.turns import Arrivals
from lbopt.instances.readers.values import RowFault, field_of, parse

LONGEST_LINE = 2**22

_NAME_THEM = "; other names are given as --column prompt=NAME and output=NAME"

#: The first line of an agentic trace of Dynamo says this, and the size of blocks.
_AGENTIC = "dynamo.agentic_mooncake"


def json_rows(contents: Contents, format: Format, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of a file, with times as they stand there; name the first that cannot be used (or skip them).

    Parameters
    ----------
    contents, format, source, skip_malformed
        As in `read_rows`.
    """
    prompt, output, said = array("q"), array("q"), ""
    names, malformed, size = format.columns, 0, format.block_tokens
    arrivals = (
        None
        if names.arrival is None
        else Arrivals(names.arrival, format.unit or "s", format.latest, turns=format.hashes is not None)
    )
    blocks = Blocks(format.hashes)
    where, records = _records(contents, source)
    for place, record in records:
        if isinstance(record, dict) and record.get("schema") == _AGENTIC and not prompt:
            size = record.get("block_size") or size
            continue
        try:
            try:
                request, answer = lengths(names, record[names.prompt], record[names.output])
            except (KeyError, TypeError):  # a fault instead of a row, no object, or one without a field
                request, answer = lengths(names, *(field_of(record, name, _NAME_THEM) for name in names.named[:2]))
            if format.detected and (form := form_of(record.keys())) != format.form and form != "lengths":
                raise InputError(
                    f"{source}, {where.format(place)} is a row of {TABLE[form].title}, and the file begins as "
                    f"{format.title}; split it, or name one format for all rows, --format {format.form} or {form}"
                )
            if arrivals is not None:
                arrivals.add(place, record)
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, {where.format(place)}: {fault}") from None
            malformed += 1
            continue
        if not prompt:
            said = str(record.get("timestamp_unit", ""))
        prompt.append(request)
        output.append(answer)
        if blocks.field is not None:
            blocks.add(record)
    prompts, outputs = np.array(prompt, dtype=np.int64), np.array(output, dtype=np.int64)
    prefixes = blocks.prefixes(prompts, size, source)
    if arrivals is None:
        return Rows(prompt=prompts, output=outputs, arrival=None, malformed=malformed, prefixes=prefixes)
    times, left_out = arrivals.settled(where, source, skip_malformed=skip_malformed)
    kept = np.ones(prompts.size, dtype=np.bool_)
    kept[left_out] = False
    return Rows(
        prompt=prompts[kept],
        output=outputs[kept],
        arrival=None if times is None else times[kept],
        malformed=malformed + left_out.size,
        prefixes=None if prefixes is None else prefixes.of_requests(kept),
        later=arrivals.later,
        unit=said if arrivals.dates is None else DATES,
    )


def _records(contents: Contents, source: str) -> tuple[str, Iterator[Record]]:
    """Return how the places of records are called, and the records of a file."""
    if is_document(contents.head):
        return "data[{}]", _listed(contents.blocks, source)
    return LINE, _json_lines(contents.blocks)


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
    """Yield the objects of a list, alone or under "data" in a document, counted from 0."""
    document = whole(b"".join(text).decode(), source)
    records = document.get("data") if isinstance(document, dict) else document
    if not isinstance(records, list):
        found = f"the fields {listed(document)}" if isinstance(document, dict) else shown(document)
        raise InputError(f'{source} holds {found}; expected {{"data": [{{"input_length", "output_length"}}, ...]}}')
    yield from enumerate(records)


def whole(text: str, source: str) -> Any:
    """Return the value of a JSON file, or say what is wrong with it and why that may be."""
    try:
        return parse(text)
    except RowFault as fault:
        if re.match(r"\[[^\]\n]*\][ \t]*[A-Za-z]", text):
            raise InputError(
                f"{source}, line 1: {shown(text.partition(chr(10))[0], 60)} is a line of a log and no JSON, though it "
                "begins with '['; expected a table with one row per request"
            ) from None
        several = "; write each object on a line of its own (jq -c . FILE)" if "Extra data" in str(fault) else ""
        cut = "; the file may be truncated: fetch or copy it again" if _ends_early(text) else ""
        raise InputError(f"{source}: {fault}{several or cut}") from None


def _ends_early(text: str) -> bool:
    """Tell whether a JSON text that cannot be read breaks off: more is opened than closed."""
    bare = re.sub(r'"(\\.|[^"\\])*"?', "", text)
    return sum(map(bare.count, "[{")) > sum(map(bare.count, "]}"))
