"""How much a compressed file may grow: counted while it is unpacked, and refused before it fills the memory.

A text from outside in blocks of whole lines, plain or gzip: read as often as wanted, never all of it at once.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr, BinaryIO

from lbopt.exceptions import InputError
from lbopt.files.regular import opened
from lbopt.files.text import MARK, fault_of, odd_byte, other_kind

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


#: Bytes that are read at a time from a plain file; a block is longer where a line is.
BLOCK = 2**22

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TextBlocks:
    """A text file in UTF-8.

    Parameters
    ----------
    path
        The file; gzip is recognised by its content.
    name
        What errors call it.
    largest
        Bytes that it may have, packed and unpacked.
    expected
        What errors say was expected.
    """

    path: str | os.PathLike[str]
    name: str
    largest: int
    expected: str

    def __iter__(self) -> Iterator[bytes]:
        """Yield the text, without byte order mark, in blocks that each end with a line end, but for the last.

        Raises
        ------
        InputError
            Where the file cannot be read, is too large or damaged, or is no text: the error of `check`, whichever
            fault comes first.
        """
        for place, block in enumerate(self._lines()):
            known = place or other_kind(block, self.name, self.expected) is None
            if not known or b"\0" in block or odd_byte(block) >= 0:
                self.check()
                raise InputError(f"{self.name} was changed while it was read; read it again")
            if text := block if place else block.removeprefix(MARK):
                yield text

    def head(self, least: int) -> bytes:
        """Return the beginning: the first line that is not blank with all before it, and at least so many bytes."""
        found: list[bytes] = []
        size, holds_something = 0, False
        for block in self:
            found.append(block)
            size += len(block)
            holds_something = holds_something or not block.isspace()
            if size >= least and holds_something:  # a block ends with a line, if it is not the last
                break
        return b"".join(found)

    def check(self) -> None:
        """Read the whole file, and refuse it for what `text_bytes` would refuse; what concerns all of it goes first.

        Raises
        ------
        InputError
            Where the file cannot be read, is too large, is damaged gzip, another kind of file or UTF-16, holds a NUL
            byte, or is not UTF-8: the first of these that holds, with its first line.
        """
        if (fault := fault_of(self._lines(), self.name, self.expected)) is not None:
            raise fault

    def _lines(self) -> Iterator[bytes]:
        """Yield the bytes in blocks that end with a line end, but for the last."""
        begun: list[bytes] = []
        for block in self._unpacked():
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*begun, block[:end]])
                begun.clear()
            begun.append(block[end:])
        if last := b"".join(begun):
            yield last

    def _unpacked(self) -> Iterator[bytes]:
        with opened(self.path, self.name, largest=self.largest) as stream:
            packed = stream.read(len(_GZIP)) == _GZIP
            stream.seek(0)
            if packed:
                yield from gunzipped_blocks(stream, self.name, largest=self.largest)
                return
            size = 0
            while block := stream.read(BLOCK):
                size += len(block)
                if size > self.largest:  # a file may grow
                    raise InputError(
                        f"cannot read {self.name}: it has more than {self.largest:,} bytes, which are the most that "
                        "are read"
                    )
                yield block


def without_blank_end(pieces: Iterable[AnyStr]) -> Iterator[AnyStr]:
    """Yield a text without the white space at its end.

    Parameters
    ----------
    pieces
        The text, as characters or as bytes, in pieces that end with a line end, but for the last. So do those that
        are yielded: the last line that is not blank is held back until another follows.
    """
    held: list[AnyStr] = []
    for piece in pieces:
        held.append(piece)
        if not piece.isspace():
            text = piece[:0].join(held)
            line_end = "\n" if isinstance(text, str) else b"\n"
            cut = text.rfind(line_end, 0, len(text.rstrip())) + 1
            if cut:
                yield text[:cut]
            held = [text[cut:]]
    if held and (last := held[0][:0].join(held).rstrip()):
        yield last
