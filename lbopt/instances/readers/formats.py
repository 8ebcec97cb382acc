"""The formats of traces, as a table: the signature by which each is known, and which of its fields hold what.

A format of requests that is like these is one entry more. Sources:

- Azure LLM inference traces (github.com/Azure/AzurePublicDataset, CC BY): files of 2023 have times without a zone and
  seven digits of a second, those of 2024 end in ``+00:00``, that of 2025 adds ``NumImages``.
- BurstGPT (github.com/HPMLL/BurstGPT, CC BY 4.0): seconds; a row with 0 response tokens is a failed request. Newer
  files have ``Session ID`` and ``Elapsed time``, the seconds to the end of the answer.
- Mooncake (github.com/kvcache-ai/Mooncake, FAST25-release, Apache 2.0): milliseconds; each of ``hash_ids`` names a
  block of 512 tokens of the prompt together with all before it. AIPerf and Dynamo write the same form with sessions
  (`turns`), Dynamo also with the names in `_DYNAMO`.
- Qwen-Bailian (github.com/alibaba-edu/qwen-bailian-usagetraces-anon, Apache 2.0): the fields of Mooncake with
  ``chat_id`` and ``parent_chat_id``, but seconds, and blocks of 16 tokens.
- ServeGen (github.com/alibaba/ServeGen): the requests that it draws, as CSV, in seconds.
- Lengths without times: the form in which the code of the BF-IO paper keeps its samples, or one object per line.

Files are read in blocks: unpacked if gzip, without byte order mark, or refused in a sentence.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Literal

from lbopt.exceptions import InputError
from lbopt.files import TextBlocks, called, not_by_commas, shown
from lbopt.instances.readers.values import LARGEST_SECONDS, RowFault, parse
from lbopt.spec import did_you_mean

Clock = Literal["number", "date-time", "auto"]

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
        "CSV", or "JSON": objects, one per line or in a list, which may stand under "data" in a document.
    columns
        Names of the columns or fields. Those of tokens are part of the signature; a file without its column of times
        then fails with a message that says so.
    clock
        How arrivals are written; "auto" is numbers or date-times, as the first row says.
    unit
        Of arrivals that are numbers: s, ms, us or ns; None where the format does not say.
    certain
        Whether the signature leaves no doubt about the unit, whatever the values are.
    signature
        Further columns, all of which a CSV file of the format has; or fields, one of which an object has.
    detected
        Whether the beginning of a JSON file told it, so that a row of another form is refused.
    hashes, block_tokens
        Field of the blocks of a prompt, None where the format has none; and tokens that each of them stands for.
    """

    title: str
    kind: Literal["CSV", "JSON"]
    columns: Columns
    clock: Clock = "number"
    unit: str | None = "s"
    certain: bool = False
    signature: tuple[str, ...] = ()
    hashes: str | None = None
    block_tokens: int = BLOCK_TOKENS
    detected: bool = False

    @property
    def form(self) -> str:
        """Its name in the table."""
        return next(name for name, one in TABLE.items() if one.title == self.title)

    @property
    def latest(self) -> float:
        """Largest number that may be a time: of an uncertain unit, of any."""
        return LARGEST_SECONDS * (1.0 if self.certain else 1e9)


_OF_MOONCAKE = Columns("input_length", "output_length", "timestamp")

#: In the order in which they are tried: a signature that is a part of another comes after it.
TABLE = {
    "azure": Format("Azure CSV", "CSV", Columns("ContextTokens", "GeneratedTokens", "TIMESTAMP"), "date-time"),
    "burstgpt": Format("BurstGPT CSV", "CSV", Columns("Request tokens", "Response tokens", "Timestamp"), certain=True),
    "servegen": Format(
        "ServeGen CSV",
        "CSV",
        Columns("input_tokens", "output_tokens", "timestamp"),
        signature=("request_id", "timestamp"),
    ),
    "bailian": Format(
        "Bailian JSON lines",
        "JSON",
        _OF_MOONCAKE,
        signature=("chat_id", "parent_chat_id"),
        hashes="hash_ids",
        block_tokens=16,
    ),
    "mooncake": Format("Mooncake JSON lines", "JSON", _OF_MOONCAKE, unit="ms", hashes="hash_ids"),
    "lengths": Format("lengths JSON", "JSON", Columns("input_length", "output_length"), hashes="hash_ids"),
}
_KNOWN = ", ".join(one.title for one in TABLE.values())

#: What Dynamo also calls the fields of Mooncake, and the fields by which such a row is known.
_DYNAMO = Columns("input_tokens", "output_tokens", "created_time")
_OF_DYNAMO = {"hash_ids", "delay", "delay_ms", "wait_for"}
_OF_TIMES = {"timestamp", "created_time", "delay", "delay_ms", "wait_for"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the needed columns in the header of a CSV file, counted from 0."""

    header: tuple[str, ...]
    prompt: int
    output: int
    arrival: int | None
    clock: Clock
    latest: float = LARGEST_SECONDS

    @property
    def places(self) -> list[int]:
        """Those of prompt, output and, where there is one, arrival."""
        return [self.prompt, self.output, *([] if self.arrival is None else [self.arrival])]


def detect(data: bytes, source: str) -> str:
    """Return the name of the format that a file has, by how it begins; its name is not used."""
    start = data[:65536].lstrip()
    if re.match(rb'\{|\[\s*[\[{"\]]', start):  # a line of a log, too, may begin with a bracket
        return _detect_json(data, source)
    header = header_of(data, source)
    for name, one in TABLE.items():
        if one.kind == "CSV" and {one.columns.prompt, one.columns.output, *one.signature} <= set(header):
            return name
    if wrong := not_by_commas(header):
        raise InputError(f"{source}, line 1: {wrong}")
    if len(header) == 6 and header[3] in ("Gamma", "Weibull", ""):
        raise InputError(f"{source} {SERVEGEN_CLIENT}")
    raise InputError(
        f"{source}, line 1: {shown(','.join(header))} is the header of no known trace; expected one of {_KNOWN}, "
        "or name the columns that hold prompt and output tokens"
    )


SERVEGEN_CLIENT = (
    "describes a client of ServeGen and holds no requests; draw them with servegen, and read the CSV that it saves"
)


def _detect_json(data: bytes, source: str) -> str:
    fields = fields_of(data)
    if not {"input_length", "output_length"} & fields and not fields & _OF_DYNAMO:
        if data.lstrip().startswith(b"["):
            raise InputError(
                f"{source} is a JSON list without input_length and output_length; expected one of {_KNOWN} "
                "(conversations must be tokenised first)"
            )
        if b'"input_tokens": "{' in data:
            raise InputError(f"{source} {SERVEGEN_CLIENT}")
        return "lengths"
    return form_of(fields)


def form_of(fields: Set[str]) -> str:
    """Return the name of the format of JSON that has such fields."""
    if not fields.isdisjoint(TABLE["bailian"].signature):
        return "bailian"
    return "lengths" if fields.isdisjoint(_OF_TIMES) else "mooncake"


def is_document(data: bytes) -> bool:
    """Tell whether a JSON file is one document with a list of objects, and not an object per line, by its beginning."""
    text = data.lstrip()
    if text.startswith(b"["):
        return True
    try:
        first = parse(text.split(b"\n", 1)[0])
    except RowFault:  # a document over several lines, or a first line that is cut off
        return not text.startswith(b'{"') or re.search(rb'"data"\s*:\s*\[', text[: 2**22]) is not None
    return not isinstance(first, dict) or isinstance(first.get("data"), list)


def fields_of(data: bytes) -> set[str]:
    """Return the fields that the first objects of a JSON file have, by its beginning."""
    text = data.lstrip()
    if is_document(data):
        return _named_in(text)
    fields: set[str] = set()
    for line in text[: 2**22].split(b"\n")[:_FIRST]:
        try:
            fields |= set(parse(line))
        except (RowFault, TypeError):  # a line that is cut off may still show what it is
            fields |= _named_in(line)
    return fields


def _named_in(text: bytes) -> set[str]:
    columns = (*TABLE["bailian"].columns.named, *TABLE["bailian"].signature, *_DYNAMO.named, *_OF_DYNAMO)
    return {name for name in columns if f'"{name}"'.encode() in text}


#: Lines whose fields are looked at.
_FIRST = 20


def adapted(format: Format, data: bytes) -> Format:
    """Return a format of JSON with the names that a file uses for its fields."""
    if format.kind == "CSV" or not (fields := fields_of(data)) & _OF_DYNAMO:
        return format
    pairs = zip(format.columns.named, _DYNAMO.named, strict=False)
    return replace(format, columns=Columns(*(other if other in fields - {own} else own for own, other in pairs)))


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
