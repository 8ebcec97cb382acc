"""Regular files, and how errors show what stands in them.

Values and names from a file as an error shows them: escaped, short, and at a bounded cost whatever they are.

Regular files alone, up to a size: no folder, device or pipe is read, and nothing waits for a writer. The standard input
is kept in a file first.
"""

from __future__ import annotations

import os
import re
import reprlib
import shutil
import stat
import sys
import tempfile
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

from lbopt.exceptions import InputError

#: Bits of the largest whole number that is written out; Python refuses to write those of thousands of digits.
_BITS_SHOWN = 200

#: Control characters of ASCII and Latin-1, and those of Unicode that reorder what is shown.
_COMMANDS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

Name = TypeVar("Name", bound=Hashable)


class _Short(reprlib.Repr):
    """`repr` that looks at the first entries alone."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 400
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 60

    def repr_int(self, x: int, level: int) -> str:
        """Return the number, or how long it is."""
        return repr(x) if x.bit_length() <= _BITS_SHOWN else f"a whole number of {x.bit_length():,} bits"


_SHORT = _Short()


def shown(value: object, most: int = 40) -> str:
    """Return a value for an error message: its `repr`, cut to `most` characters with its last one kept."""
    text = repr(value) if isinstance(value, str) and len(value) <= most else _SHORT.repr(value)
    return text if len(text) <= most else f"{text[: most - 4]}...{text[-1]}"


def listed(names: Iterable[object], most: int = 200) -> str:
    """Return the first names of a file for an error message, on one line of `most` characters whatever they hold."""
    first = [_name(name) for name in islice(names, 9)]
    text = ", ".join([*first[:8], "..."] if len(first) > 8 else first) or "nothing"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def repeated(names: Iterable[Name]) -> Name | None:
    """Return the first name that stands a second time; None where each stands once."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def printable(text: str) -> str:
    """Return a text without what moves or colours a terminal: such characters are written as in a Python text.

    Tabulators and ends of lines stay. Characters that turn the direction of writing are among those that go.
    """
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def _name(name: object) -> str:
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 100 else shown(name, 100)


#: Bytes of one document (JSON, CSV, TOML) that is read as a whole. Traces and captures have limits of their own.
LARGEST_DOCUMENT = 256 * 2**20

_BLOCK = 2**16

_FOLDER = "it is a folder; expected a regular file"

#: A pipe without a writer must not be waited for, and a terminal must not become ours.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def opened(
    path: str | os.PathLike[str], name: str | None = None, *, largest: int = LARGEST_DOCUMENT, way_out: str = ""
) -> Iterator[BinaryIO]:
    """Open a regular file to read its bytes; "-" is what stands in the standard input, which may be opened again.

    Parameters
    ----------
    name
        What errors call it, such as "the device card 'mine.toml'"; its path by default.
    largest
        Bytes that it may have.
    way_out
        Added to the error where nothing can be opened, such as "; give a CSV file".

    Raises
    ------
    InputError
        Where there is no such file, it cannot be read, it is a folder, a device or a pipe, or it is larger.
    """
    name = called(path) if name is None else name
    try:
        with os.fdopen(_descriptor(_input() if os.fspath(path) == "-" else path, name, largest), "rb") as stream:
            yield stream
    except OSError as error:
        is_folder = isinstance(error, IsADirectoryError)
        raise InputError(f"cannot read {name}: {_FOLDER if is_folder else error.strerror or error}{way_out}") from None


@cache
def _kept_input() -> IO[bytes]:
    kept = tempfile.NamedTemporaryFile(prefix="lbopt-")  # noqa: SIM115 - it goes with this process
    shutil.copyfileobj(sys.stdin.buffer, kept)
    kept.flush()
    return kept


def _input() -> str:
    """Return the path of a file with what stands in the standard input; nothing waits for what is typed."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("cannot read '-': the standard input is a terminal; pipe a file into it, or name one")
    return _kept_input().name


def _descriptor(path: str | os.PathLike[str], name: str, largest: int) -> int:
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        raise InputError(f"cannot read {name}: its path holds a NUL byte or is no text") from None
    try:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise InputError(f"cannot read {name}: {_FOLDER}")
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"cannot read {name}: it is a device or a pipe; expected a regular file")
        if about.st_size > largest:
            raise InputError(f"cannot read {name}: it has {about.st_size:,} bytes; expected at most {largest:,}")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_bytes(
    path: str | os.PathLike[str], name: str | None = None, *, largest: int = LARGEST_DOCUMENT, way_out: str = ""
) -> bytes:
    """Return the bytes of a regular file; errors are those of `opened`.

    Parameters
    ----------
    path, name, largest, way_out
        As in `opened`.
    """
    name = called(path) if name is None else name
    with opened(path, name, largest=largest, way_out=way_out) as stream:
        try:
            size = os.fstat(stream.fileno()).st_size
            data = stream.read(size + 1)
            while size < len(data) <= largest:  # a file may grow, and those of /proc do not tell their size
                size = len(data)
                data += stream.read(_BLOCK)
        except MemoryError:
            raise InputError(f"cannot read {name}: it does not fit into memory") from None
    if len(data) > largest:
        raise InputError(f"cannot read {name}: it has more than {largest:,} bytes, which are the most that are read")
    return data


def starts_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Tell whether a file is regular and begins with these bytes; what is wrong with it is for its reader to say."""
    try:
        with opened(path, largest=2**63) as stream:
            return stream.read(len(magic)) == magic
    except InputError:
        return False


def exists(path: str | os.PathLike[str]) -> bool:
    """Tell whether something is there; a path that cannot be, such as one that is too long, is not there."""
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def check_name(path: str | os.PathLike[str], name: str) -> None:
    """Refuse a path that the system cannot look up, whether or not something is there.

    Raises
    ------
    InputError
        Where a part of the path is too long, holds a NUL byte, or lies in a folder that may not be entered.
    """
    try:
        Path(path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"cannot use {name}: {why}; give another name") from None


def called(path: str | os.PathLike[str]) -> str:
    """Return a path as errors show it: escaped where it cannot be printed, and cut."""
    text = "the standard input" if os.fspath(path) == "-" else os.fspath(path)
    return text if text.isprintable() and len(text) <= 200 else shown(text, 200)
