"""Bytes that have to be text in UTF-8: without byte order mark, without NUL bytes, or refused with the line.

CSV from outside: every row with its line, strict in quotes and in width.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from lbopt.exceptions import InputError
from lbopt.files.regular import LARGEST_DOCUMENT, called, listed, read_bytes, repeated, shown

#: The byte order mark of UTF-8.
MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OTHER = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
}


def text_bytes(data: bytes, name: str, expected: str = "text in UTF-8") -> bytes:
    """Return bytes that are text in UTF-8, without byte order mark.

    Raises
    ------
    InputError
        Where the bytes are those of another kind of file, text in UTF-16, or no text.
    """
    if (fault := fault_of([data], name, expected)) is not None:
        raise fault
    return data.removeprefix(MARK)


def fault_of(blocks: Iterable[bytes], name: str, expected: str) -> InputError | None:
    """Return what is wrong with a text, which may come in blocks of whole lines; None where nothing is.

    What concerns all of it goes first: another kind of file, then a NUL byte, then what is not UTF-8.
    """
    kind: InputError | None = None
    nul: InputError | None = None
    odd: InputError | None = None
    line = 0
    for place, block in enumerate(blocks):
        if not place:
            kind = other_kind(block, name, expected)
        if nul is None and (at := block.find(b"\0")) >= 0:
            nul = InputError(f"{name}, line {line + line_of(block, at):,}: a NUL byte; expected {expected}")
        if odd is None and (at := odd_byte(block)) >= 0:
            odd = InputError(f"{name}, line {line + line_of(block, at):,}: byte 0x{block[at]:02x} is not UTF-8 text")
        line += block.count(b"\n")
    return kind or nul or odd


def other_kind(data: bytes, name: str, expected: str) -> InputError | None:
    """Return the error about a file that begins so, where it is of another kind or in UTF-16."""
    if data.startswith(_UTF_16):
        return InputError(f"{name} is UTF-16 text; expected {expected}: save it as UTF-8")
    for magic, kind in _OTHER.items():
        if data.startswith(magic):
            return InputError(f"{name} is {kind}; expected {expected}")
    return None


def odd_byte(data: bytes) -> int:
    """Return the place of the first byte that is not UTF-8; -1 where all are."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return error.start
    return -1


def read_text(
    path: str | os.PathLike[str], name: str | None = None, *, largest: int = LARGEST_DOCUMENT, way_out: str = ""
) -> str:
    """Return the text of a regular file in UTF-8.

    Parameters
    ----------
    name
        What errors call it; its path by default.
    largest
        Bytes that it may have.
    way_out
        Added to the error where nothing can be opened, such as "; give a CSV file".

    Raises
    ------
    InputError
        Where the file cannot be read, is too large, or is no text in UTF-8.
    """
    name = called(path) if name is None else name
    return text_bytes(read_bytes(path, name, largest=largest, way_out=way_out), name).decode()


def line_of(data: bytes, place: int) -> int:
    """Return the number, from 1, of the line that holds the byte at `place`."""
    return data.count(b"\n", 0, place) + 1


#: Characters of a line.
LONGEST_LINE = 2**22

#: Characters of a piece of a text; a piece is longer where a line is.
_PIECE = 2**18


class CsvTable(NamedTuple):
    """Rows of a CSV file with the line on which each ends; every row is as wide as the header."""

    header: list[str]
    rows: list[tuple[int, list[str]]]


def csv_records(
    text: str | Iterable[str], name: str, *, delimiter: str = ",", hint: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of each row, the header among them.

    Parameters
    ----------
    text
        The file, whole or in pieces that end with a line feed, but for the last.
    hint
        Added to the error about a quote that is not closed.

    Raises
    ------
    InputError
        Where a line is no row of a CSV file: a quote that is not closed, a field or a line without end.
    """
    pieces = _pieces(text) if isinstance(text, str) else text
    table = csv.reader(chain.from_iterable(_lines(pieces, name)), delimiter=delimiter, strict=True)
    try:
        for row in table:
            yield table.line_num, row
    except csv.Error as error:
        cause = hint if "end of data" in str(error) else ""
        raise InputError(f"{name}, line {table.line_num:,}: not a CSV row ({error}){cause}") from None


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end with a line feed, but for the last."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + _PIECE) + 1 or text.find("\n", start + _PIECE) + 1 or len(text)
        yield text[start:end]
        start = end


def _lines(pieces: Iterable[str], name: str) -> Iterator[io.StringIO]:
    """Yield the lines of each piece, with their ends; a line of more than `LONGEST_LINE` characters is refused."""
    before = 0
    for piece in pieces:
        place = _long_line(piece)
        yield io.StringIO(piece if place < 0 else piece[:place], newline="")
        if place >= 0:
            line = before + piece.count("\n", 0, place) + 1
            raise InputError(
                f"{name}, line {line:,} has more than {LONGEST_LINE:,} characters; expected a row of a table"
            )
        before += piece.count("\n")


def _long_line(text: str) -> int:
    """Return where the first line begins that has more than `LONGEST_LINE` characters; -1 where there is none."""
    start = 0
    while len(text) - start > LONGEST_LINE:
        end = text.rfind("\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            return start
        start = end + 1
    return -1


def not_by_commas(header: Sequence[str]) -> str | None:
    """Return what is wrong where a header of one column is one whose columns are separated by something else."""
    mark = next((mark for mark in (";", "\t", "|") if mark in header[0]), None) if len(header) == 1 else None
    if mark is None:
        return None
    return (
        f"the columns are separated by {mark!r}; expected commas: export it once more with commas between columns and "
        "points in decimals"
    )


def csv_table(text: str, name: str, *, or_none: bool = False) -> CsvTable:
    """Return header and rows of a CSV file; blank lines are passed over.

    Parameters
    ----------
    or_none
        Whether there may be no row.

    Raises
    ------
    InputError
        Where there is no row; a column's name stands twice in the header, or its columns are not separated by commas; a
        row is wider or narrower than the header, or repeats it.
    """
    # A row of empty fields is a row: what it lacks is for the reader to say.
    records = ((line, row) for line, row in csv_records(text, name) if len(row) > 1 or (row and row[0].strip()))
    line, first = next(records, (1, []))
    header = [cell.strip() for cell in first]
    if wrong := not_by_commas(header):
        raise InputError(f"{name}, line {line:,}: {wrong}")
    twice = repeated(header)
    if twice is not None:
        raise InputError(f"{name} has the column {shown(twice)} twice; every column needs a name of its own")
    rows = []
    for line, row in records:
        if len(row) != len(header):
            raise InputError(f"{name}, line {line:,}: {len(row)} fields under {len(header)} columns ({listed(header)})")
        if [cell.strip() for cell in row] == header:
            raise InputError(f"{name}, line {line:,}: the header is repeated")
        rows.append((line, row))
    if not rows and not or_none:
        raise InputError(f"{name} has {'a header but no rows' if header else 'no rows'}; expected a CSV with a header")
    return CsvTable(header, rows)
