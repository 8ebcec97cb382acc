"""How much a compressed file may grow: counted while it is unpacked, and refused before it fills the memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from lbopt.exceptions import InputError

#: A compressed file that grows by more than this factor, beyond what is harmless, is none that is read here.
LARGEST_EXPANSION = 100

#: Unpacked bytes that any archive may have.
HARMLESS = 64 * 2**20

#: Unpacked bytes that any compressed text may have; as rows and values a text takes some twenty times its bytes.
HARMLESS_TEXT = 16 * 2**20

_BLOCK = 2**20


def most_unpacked(packed: int, largest: int, harmless: int | None = None) -> int:
    """Return the bytes to which packed ones may grow.

    Parameters
    ----------
    packed
        Bytes of the compressed file.
    largest
        The limit of the reader, bytes.
    harmless
        Bytes that any such file may have; `HARMLESS` by default.
    """
    return min(largest, max(HARMLESS if harmless is None else harmless, LARGEST_EXPANSION * packed))


def gunzipped(data: bytes, name: str, *, largest: int) -> bytes:
    """Return the content of a gzip file.

    Parameters
    ----------
    data
        The file.
    name, largest
        As in `gunzipped_blocks`, which has the errors, too.
    """
    return b"".join(gunzipped_blocks(io.BytesIO(data), name, largest=largest))


def gunzipped_blocks(packed: BinaryIO, name: str, *, largest: int) -> Iterator[bytes]:
    """Yield the content of a gzip file in blocks of up to a MiB.

    Parameters
    ----------
    packed
        The file, at its beginning; it is not closed.
    name
        What errors call it.
    largest
        Bytes that the content may have.

    Raises
    ------
    InputError
        Where the file is damaged, ends too early, or grows beyond `most_unpacked`.
    """
    whole = packed.seek(0, io.SEEK_END)
    packed.seek(0)
    size = 0
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                # of what was read so far: a bomb ends early
                if size > (most := most_unpacked(packed.tell(), largest, HARMLESS_TEXT)):
                    raise InputError(
                        f"{name} unpacks from {whole:,} to more than {most:,} bytes; "
                        "unpack it yourself if it is what you meant"
                    )
                yield block
    except EOFError:
        raise InputError(f"{name} is a gzip file that ends too early; fetch or copy it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is a damaged gzip file: {error}; fetch or copy it again") from None
