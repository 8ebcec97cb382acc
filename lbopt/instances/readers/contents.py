"""The bytes of a trace file: unpacked if gzip, without byte order mark, known to be text, or refused in a sentence."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path

from lbopt.exceptions import InputError

#: Unpacked size that is still read; the largest public file (one week of Azure 2024) is about a third of it.
LARGEST_FILE = 4 * 2**30

#: A gzip file that grows by more than this factor, beyond 64 MiB, is not a trace.
LARGEST_EXPANSION = 200

_BLOCK = 2**20
_HARMLESS = 64 * _BLOCK
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"PAR1": "a Parquet file",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


def read_contents(path: str | os.PathLike[str]) -> bytes:
    """Return the text of a file as UTF-8 bytes without byte order mark.

    Raises
    ------
    InputError
        Where there is no such file, or it is a folder, unreadable, empty, too large, binary, or damaged gzip.
    """
    raw = _raw(Path(path))
    data = _unpacked(path, raw) if raw.startswith(b"\x1f\x8b") else raw
    for magic, kind in _FOREIGN.items():
        if data.startswith(magic):
            raise InputError(f"{path} is {kind}; expected UTF-8 text (CSV, JSON or JSON lines), plain or gzip")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data[:_BLOCK].isspace():
        raise InputError(f"{path} is empty; expected a trace as CSV, JSON or JSON lines")
    if (place := data.find(b"\0")) >= 0:
        raise InputError(f"{path}, line {line_of(data, place)}: a NUL byte; expected text")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            where = line_of(data, error.start)
            raise InputError(f"{path}, line {where}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None
    return data


def line_of(data: bytes, place: int) -> int:
    """Return the number, from 1, of the line that holds the byte at `place`."""
    return data.count(b"\n", 0, place) + 1


def _raw(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; expected a trace file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a device or a pipe; expected a regular file")
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} has {path.stat().st_size:,} bytes; expected at most {LARGEST_FILE:,}")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except PermissionError:
        raise InputError(f"{path} cannot be read: permission denied") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)[:200]!r} cannot be read: {reason}") from None


def _unpacked(path: str | os.PathLike[str], raw: bytes) -> bytes:
    limit = min(LARGEST_FILE, max(_HARMLESS, LARGEST_EXPANSION * len(raw)))
    blocks: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise InputError(f"{path} unpacks from {len(raw):,} to more than {limit:,} bytes; that is no trace")
                blocks.append(block)
    except EOFError:
        raise InputError(f"{path} is a gzip file that ends too early; fetch or copy it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is a damaged gzip file: {error}; fetch or copy it again") from None
    return b"".join(blocks)
