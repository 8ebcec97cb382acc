"""Bytes that have to be text in UTF-8: without byte order mark, without NUL bytes, or refused with the line."""

from __future__ import annotations

import os

from lbopt.exceptions import InputError
from lbopt.files.regular import LARGEST_DOCUMENT, called, read_bytes

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

    Parameters
    ----------
    data
        The file.
    name
        What errors call it.
    expected
        What errors say was expected.

    Raises
    ------
    InputError
        Where the bytes are those of another kind of file, text in UTF-16, or no text.
    """
    if (error := other_kind(data, name, expected)) is not None:
        raise error
    data = data.removeprefix(MARK)
    if (place := data.find(b"\0")) >= 0:
        raise nul_byte(name, line_of(data, place), expected)
    if (place := odd_byte(data)) >= 0:
        raise no_utf_8(name, line_of(data, place), data[place])
    return data


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


def nul_byte(name: str, line: int, expected: str) -> InputError:
    """Return the error about a NUL byte."""
    return InputError(f"{name}, line {line:,}: a NUL byte; expected {expected}")


def no_utf_8(name: str, line: int, byte: int) -> InputError:
    """Return the error about a byte that is not UTF-8."""
    return InputError(f"{name}, line {line:,}: byte 0x{byte:02x} is not UTF-8 text")


def read_text(
    path: str | os.PathLike[str], name: str | None = None, *, largest: int = LARGEST_DOCUMENT, way_out: str = ""
) -> str:
    """Return the text of a regular file in UTF-8.

    Parameters
    ----------
    path
        The file.
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
