"""Writes a file or a folder whole or not at all.

Both are made beside their place, under a fresh name ``.lbopt-*.partial``, and then moved there. The name is taken
exclusively: a link that lies there is never followed. Its permissions are those that the umask leaves. The writer
holds a lock on it, which the system drops when the process ends, also by kill -9. An entry that is not locked was left
by a kill, and the next writer in the same folder removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError

fcntl: Any = None  # not a POSIX system: nothing is locked, and nothing that a kill left is removed
with suppress(ImportError):
    fcntl = import_module("fcntl")

_NAME = re.compile(r"\.lbopt-[0-9a-f]{16}\.partial")

#: An entry is locked a moment after it is made. Who finds it removed in between makes another.
_ATTEMPTS = 5


@contextmanager
def whole_file(path: Path, noun: str = "") -> Iterator[Path]:
    """Give the path of an empty file to write into; when the block ends it takes the place of `path`, flushed to disk.

    Where the block raises, `path` stays as it was and nothing is left beside it.

    Parameters
    ----------
    path
        The file to write. A link there is replaced, not followed.
    noun
        What messages call the file, such as "table"; its name follows.

    Raises
    ------
    InputError
        If there is something other than a regular file, or the system refuses to write.
    """
    what = f"{noun} '{path}'".lstrip()
    try:
        if "\0" in str(path):
            raise InputError(f"cannot write {what!r}: the name holds a NUL character; give another name")
        if path.is_dir():
            raise InputError(f"cannot write {what}: it is a folder; give the name of a file")
        if path.exists() and not path.is_file():  # a device, say: moving a file there would do away with it
            raise InputError(f"cannot write {what}: it is not a regular file; give another name")
        with _unfinished(path.parent, _make_file) as partial:
            yield partial
            flush(partial)
            partial.replace(path)
            flush(path.parent)
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot write {what}: {getattr(error, 'strerror', None) or error}") from None


def write_file(path: Path, text: str, noun: str = "") -> None:
    """Write `text` in UTF-8 to a file, whole or not at all; see `whole_file`."""
    with whole_file(path, noun) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def unfinished_folder(parent: Path) -> Iterator[Path]:
    """Give a fresh folder in `parent`; what has not been moved away when the block ends is removed."""
    with _unfinished(parent, _make_folder) as partial:
        yield partial


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep other writers of lbopt out of the entries of `folder` while they are moved, where the system has locks."""
    handle: int | None = None
    with suppress(OSError):  # a folder that may not be read, or a file system without locks
        handle = os.open(folder, os.O_RDONLY)
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def flush(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a folder are."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems refuse it for folders
            raise
    finally:
        os.close(handle)


@contextmanager
def _unfinished(folder: Path, make: Callable[[Path], int]) -> Iterator[Path]:
    _remove_abandoned(folder)
    partial, handle = folder, None
    try:
        for attempt in range(_ATTEMPTS):
            partial = folder / f".lbopt-{secrets.token_hex(8)}.partial"  # known before it exists: Ctrl-C leaves nothing
            try:
                handle = make(partial)
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1 or not folder.is_dir():
                    raise
                continue
            _locked(handle, wait=True)
            if partial.exists():
                break
            os.close(handle)
            handle = None
        yield partial
    finally:
        try:
            if partial != folder:
                _remove(partial)
        finally:
            if handle is not None:
                os.close(handle)


def _make_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)


def _make_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY)


def _locked(handle: int, *, wait: bool = False) -> bool:
    """Lock an entry; return False where another process holds it, or the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_abandoned(folder: Path) -> None:
    """Remove what writers left that were killed."""
    with suppress(OSError):  # what cannot be removed does no harm
        for entry in [*os.scandir(folder)]:
            if _NAME.fullmatch(entry.name):
                handle = os.open(entry.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _locked(handle):
                        _remove(Path(entry.path))
                finally:
                    os.close(handle)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
