"""Bytes that have to be text in UTF-8: without byte order mark, without NUL bytes, or refused with the line."""

from __future__ import annotations

import os

from lbopt.exceptions import InputError
from lbopt.files.regular import LARGEST_DOCUMENT, called, read_bytes

_MARK = b"\xef\xbb\xbf"
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
    if data.startswith(_UTF_16):
        raise InputError(f"{name} is UTF-16 text; expected {expected}: save it as UTF-8")
    for magic, kind in _OTHER.items():
        if data.startswith(magic):
            raise InputError(f"{name} is {kind}; expected {expected}")
    data = data.removeprefix(_MARK)
    if (place := data.find(b"\0")) >= 0:
        raise InputError(f"{name}, line {line_of(data, place):,}: a NUL byte; expected {expected}")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            where = f"{name}, line {line_of(data, error.start):,}"
            raise InputError(f"{where}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None
    return data


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
