"""Trust on first use: the SHA-256 of a first download, kept beside the file as ``sha256sum -c`` reads it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.whole_file import write_file


def record_of(target: Path) -> Path:
    """Return where the SHA-256 of a file is kept."""
    return target.with_name(target.name + ".sha256")


def remembered(target: Path) -> str | None:
    """Return the SHA-256 that a file had when it was first downloaded; None if it never was."""
    try:
        words = record_of(target).read_text(encoding="ascii").split()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        words = []
    except OSError as error:
        raise InputError(f"{record_of(target)} cannot be read: {error.strerror}") from None
    if not words or len(words[0]) != 64 or set(words[0]) - set("0123456789abcdef"):
        raise InputError(f"{record_of(target)} holds no SHA-256; delete it to trust the next download")
    return words[0]


def remember(target: Path, sha256: str) -> None:
    """Keep the SHA-256 of a first download; the record appears whole or not at all."""
    write_file(record_of(target), f"{sha256}  {target.name}\n")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
