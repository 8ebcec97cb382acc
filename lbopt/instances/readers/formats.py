"""The formats of traces, as a table: the signature by which each is known, and which of its fields hold what.

A format of requests that is like these is one entry more. Sources: Azure LLM inference traces
(github.com/Azure/AzurePublicDataset, CC BY), whose files of 2023 have times without a zone and seven digits of a
second, those of 2024 end in ``+00:00``; BurstGPT (github.com/HPMLL/BurstGPT, CC BY 4.0), where a row with 0 response
tokens is a failed request; Mooncake (github.com/kvcache-ai/Mooncake, FAST25-release, Apache 2.0), where each of
``hash_ids`` names a block of 512 tokens of the prompt together with all before it; lengths without times, the form in
which the code of the BF-IO paper keeps its samples of BurstGPT and arXiv.

Files are read in blocks: unpacked if gzip, without byte order mark, or refused in a sentence.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from typing import Literal

from lbopt.exceptions import InputError
from lbopt.files import TextBlocks, called, not_by_commas, shown
from lbopt.instances.readers.values import RowFault, parse
from lbopt.spec import did_you_mean

Clock = Literal["seconds", "milliseconds", "date-time", "auto"]

LONGEST_LINE = 2**20
#: Tokens that a hash of Mooncake's stands for.
BLOCK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that hold prompt tokens, output tokens and, optionally, the arrival time."""

    prompt: str
    output: str
    arrival: str | None = None

    @property
    def named(self) -> list[str]:
        """Those that are needed, in this order."""
        return [self.prompt, self.output, *([] if self.arrival is None else [self.arrival])]


@dataclass(frozen=True, slots=True)
class Format:
    """One format of traces.

    Parameters
    ----------
    title
        What errors call it.
    kind
        "CSV", "JSON lines", or "JSON": one document with a list of objects under "data".
    columns
        Names of the columns or fields. Those of tokens are the signature of a CSV file; one without its column of
        times then fails with a message that says so.
    clock
        How arrivals are written; "auto" is seconds or date-times, as the first row says.
    signature
        Fields of which an object has at least one where the format is JSON lines.
    hashes, block_tokens
        Field of the blocks of a prompt, None where the format has none; and tokens that each of them stands for.
    """

    title: str
    kind: Literal["CSV", "JSON lines", "JSON"]
    columns: Columns
    clock: Clock = "seconds"
    signature: tuple[str, ...] = ()
    hashes: str | None = None
    block_tokens: int = BLOCK_TOKENS


TABLE = {
    "azure": Format("Azure CSV", "CSV", Columns("ContextTokens", "GeneratedTokens", "TIMESTAMP"), "date-time"),
    "burstgpt": Format("BurstGPT CSV", "CSV", Columns("Request tokens", "Response tokens", "Timestamp")),
    "mooncake": Format(
        "Mooncake JSON lines",
        "JSON lines",
        Columns("input_length", "output_length", "timestamp"),
        "milliseconds",
        signature=("timestamp", "input_length"),
        hashes="hash_ids",
    ),
    "lengths": Format("lengths JSON", "JSON", Columns("input_length", "output_length")),
}
_KNOWN = ", ".join(one.title for one in TABLE.values())


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the needed columns in the header of a CSV file, counted from 0."""

    header: tuple[str, ...]
    prompt: int
    output: int
    arrival: int | None
    clock: Clock

    @property
    def places(self) -> list[int]:
        """Those of prompt, output and, where there is one, arrival."""
        return [self.prompt, self.output, *([] if self.arrival is None else [self.arrival])]


def detect(data: bytes, source: str) -> str:
    """Return the name of the format that a file has, by how it begins; its name is not used."""
    start = data[:65536].lstrip()
    if start.startswith(b"{"):
        return _detect_json(data)
    if start.startswith(b"["):
        raise InputError(f"{source} is a JSON list; expected one of {_KNOWN} (conversations must be tokenised first)")
    header = header_of(data, source)
    for name, one in TABLE.items():
        if one.kind == "CSV" and {one.columns.prompt, one.columns.output} <= set(header):
            return name
    if wrong := not_by_commas(header):
        raise InputError(f"{source}, line 1: {wrong}")
    raise InputError(
        f"{source}, line 1: {shown(','.join(header))} is the header of no known trace; expected one of {_KNOWN}, "
        "or name the columns that hold prompt and output tokens"
    )


def _detect_json(data: bytes) -> str:
    """An object with a field of a signature on the first line is one of many; anything else is one document."""
    first = data.lstrip().split(b"\n", 1)[0][: 2**22]
    try:
        fields = set(parse(first))
    except RowFault:  # a line that is cut off may still show what it is
        names = {"data", *(name for one in TABLE.values() for name in one.signature)}
        fields = {name for name in names if f'"{name}"'.encode() in first}
    of_lines = (name for name, one in TABLE.items() if one.kind == "JSON lines" and fields & set(one.signature))
    return "lengths" if "data" in fields else next(of_lines, "lengths")


def header_of(data: bytes, source: str) -> tuple[str, ...]:
    """Return the column names in the first line of a CSV file."""
    end = data.find(b"\n")
    line = data if end < 0 else data[:end]
    if len(line) > LONGEST_LINE:
        raise InputError(f"{source}, line 1 has {len(line):,} bytes; expected a header line with column names")
    try:
        fields = next(csv.reader([line.decode().rstrip("\r")], strict=True))
    except (csv.Error, StopIteration) as error:
        raise InputError(f"{source}, line 1 is not a CSV header: {str(error) or 'it is empty'}") from None
    return tuple(field.strip() for field in fields)


def locate(header: tuple[str, ...], columns: Columns, clock: Clock, source: str) -> Layout:
    """Find the named columns in a header.

    Parameters
    ----------
    header, columns, clock
        As in `Layout` and `Format`.
    """
    wanted = columns.named
    if len(set(wanted)) < len(wanted):
        raise InputError(f"prompt, output and arrival must be different columns; got {', '.join(map(repr, wanted))}")
    for name in wanted:
        if name not in header and (wrong := not_by_commas(header)):
            raise InputError(f"{source}, line 1: {wrong}")
        if name not in header:
            raise InputError(f"{source}, line 1: no column {name!r}; {_what_is_there(header, name)}")
        if header.count(name) > 1:
            raise InputError(f"{source}, line 1: {header.count(name)} columns are called {name!r}; expected one")
    places = [header.index(name) for name in wanted]
    return Layout(header, places[0], places[1], places[2] if len(places) > 2 else None, clock)


def _what_is_there(header: tuple[str, ...], wanted: str) -> str:
    names = ", ".join(shown(name) for name in header[:12]) + (", ..." if len(header) > 12 else "")
    return f"the columns are {names[:250]}{did_you_mean(wanted, header)}"


#: Unpacked size that is still read; the largest public file (one week of Azure 2024) is about a third of it.
LARGEST_FILE = 4 * 2**30

#: Bytes in which a file that is not empty begins.
_HEAD = 2**20

_EXPECTED = "UTF-8 text (CSV, JSON or JSON lines), plain or gzip"


def read_contents(path: str | os.PathLike[str]) -> bytes:
    """Return the text of a file as UTF-8 bytes without byte order mark.

    Raises
    ------
    InputError
        Where there is no such file, or it is a folder, unreadable, empty, too large, binary, or damaged gzip.
    """
    return b"".join(open_contents(path).blocks)


@dataclass(frozen=True, slots=True)
class Contents:
    """The text of a trace file.

    Parameters
    ----------
    blocks
        The text in blocks of whole lines; iterated over, the file is read anew.
    head
        How it begins: at least the first line that is not blank, and what is before it.
    """

    blocks: TextBlocks
    head: bytes


def open_contents(path: str | os.PathLike[str]) -> Contents:
    """Return the text of a file without holding it.

    Raises
    ------
    InputError
        Where `read_contents` raises one, in so far as the beginning shows it.
    """
    text = TextBlocks(path, called(path), LARGEST_FILE, _EXPECTED)
    head = text.head(_HEAD)
    if not head[:_HEAD].strip():
        text.check()
    _check_not_empty(head, text.name)
    return Contents(text, head)


def _check_not_empty(data: bytes, name: str) -> None:
    if not data[:_HEAD].strip():
        raise InputError(f"{name} is empty; expected a trace as CSV, JSON or JSON lines")
