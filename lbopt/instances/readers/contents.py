"""The text of a trace file, whole or in blocks: unpacked if gzip, without byte order mark, or refused in a sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.files import TextBlocks, called

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
