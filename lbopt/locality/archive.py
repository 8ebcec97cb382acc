"""Arrays and what they are about in one .npz file, written whole or not at all, and read with care.

The JSON text `about` names format and version. Nothing in a file is ever executed: pickled objects are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import called, opened, parse_json, shown
from lbopt.files.npz import LARGEST_ARCHIVE, NpzFile
from lbopt.whole_file import whole_file

_ABOUT = "about"


class Format(NamedTuple):
    """A kind of file: its name and version in `about`, what a sentence calls it, and what command writes one."""

    name: str
    version: int
    noun: str
    command: str


def check_place(path: Path, format: Format) -> None:
    """Refuse, before any work, a path at which no file can be written, or where something else lies already."""
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name that is too long, for one
        raise InputError(f"{format.noun} '{path}' cannot be written: {error.strerror or error}") from None
    if is_folder:
        raise InputError(f"{format.noun} '{path}' is a folder; give the name of a file")
    if path.exists():
        try:
            read_about(path, format)
        except InputError:
            raise InputError(f"'{path}' exists and is no {format.noun} of lbopt; give another name") from None
    if not path.parent.is_dir():
        raise InputError(f"{format.noun} '{path}' cannot be written: '{path.parent}' does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{format.noun} '{path}' cannot be written: '{path.parent}' is not writable")


def write_archive(path: Path, format: Format, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` and `about`, JSON values by name, to `path`; a file of the format is replaced."""
    check_place(path, format)
    text = json.dumps({"format": format.name, "version": format.version, **about}, allow_nan=False)
    with whole_file(path, format.noun) as partial, partial.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **{_ABOUT: np.array(text)}, **arrays)


def read_archive(path: Path, format: Format) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what `write_archive` was given.

    Raises
    ------
    InputError
        If there is no such file, it is of another kind, of a newer version, or damaged.
    """
    with _opened(path, format) as archive:
        about = _about(archive, path, format)
        return about, {name: archive.array(name) for name in archive.names if name != _ABOUT}


def read_about(path: Path, format: Format) -> dict[str, Any]:
    """Return `about` alone; errors are those of `read_archive`."""
    with _opened(path, format) as archive:
        return _about(archive, path, format)


@contextmanager
def _opened(path: Path, format: Format) -> Iterator[NpzFile]:
    """Open a file for reading."""
    where = f"{format.noun} '{called(path)}'"
    with opened(path, where, largest=LARGEST_ARCHIVE) as stream:
        if stream.read(4) != b"PK\x03\x04":
            raise InputError(f"'{called(path)}' is no {format.noun} of lbopt; make one with `{format.command}`")
        try:
            yield NpzFile(stream, where)
        except MemoryError:
            raise InputError(f"{where} does not fit into memory") from None


def _about(archive: NpzFile, path: Path, format: Format) -> dict[str, Any]:
    where = f"{format.noun} '{called(path)}'"
    about = parse_json(str(archive.array(_ABOUT)), f"'{_ABOUT}' of {where}") if _ABOUT in archive.names else None
    if not isinstance(about, dict) or about.get("format") != format.name:
        raise InputError(f"'{called(path)}' is no {format.noun} of lbopt; make one with `{format.command}`")
    version = about.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"{where} is damaged: it says that it is of version {shown(version)}; write it again")
    if version > format.version:
        raise InputError(
            f"{where} is of version {shown(version)}; this lbopt reads up to version {format.version}: update lbopt"
        )
    return about


def member(arrays: Mapping[str, NDArray[Any]], name: str, kinds: str, ndim: int, where: str) -> NDArray[Any]:
    """Return one array of a file, of one of these kinds of numbers and so many dimensions.

    Parameters
    ----------
    ndim
        Number of dimensions.
    """
    if name not in arrays:
        raise InputError(f"{where} holds no '{name}'; write it again")
    array = arrays[name]
    if array.dtype.kind not in kinds or array.ndim != ndim:
        wanted = "whole numbers" if kinds == "iu" else "numbers"
        raise InputError(f"{where}: '{name}' is {array.ndim}-D of type {array.dtype}; expected {ndim}-D {wanted}")
    return array
