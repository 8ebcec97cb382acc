"""The bytes of a trace file: unpacked if gzip, without byte order mark, known to be text, or refused in a sentence."""

from __future__ import annotations

import os

from lbopt.exceptions import InputError
from lbopt.files import called, gunzipped, read_bytes, text_bytes

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
    name = called(path)
    data = read_bytes(path, name, largest=LARGEST_FILE)
    if data.startswith(b"\x1f\x8b"):
        data = gunzipped(data, name, largest=LARGEST_FILE)
    data = text_bytes(data, name, _EXPECTED)
    if not data[:_HEAD].strip():
        raise InputError(f"{name} is empty; expected a trace as CSV, JSON or JSON lines")
    return data
