"""The members of a zip archive, each unpacked within the size that it states, all of them within a limit.

The directory of an archive is a claim: sizes may be false, members may overlap, two may have one name. Sizes are added
up before anything is unpacked, and no member is unpacked beyond its own.

Arrays of an .npz file: the header of each is read and compared with the member's size before anything is allocated.

NumPy's own reader evaluates a header as Python, allocates what it asks for, and unpickles on request. Here a header is
three fields of plain numbers, and only arrays of numbers, truth values and texts are read.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files.blocks import most_unpacked
from lbopt.files.regular import repeated, shown

#: Members of an archive; the library of lbopt has some hundred, a capture at most six.
MOST_MEMBERS = 4096

#: Bytes of all members together.
LARGEST_ARCHIVE = 8 * 2**30

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1

#: What a damaged archive may raise while its directory or a member is read.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    struct.error,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)


class ZipMembers:
    """An opened zip archive.

    Parameters
    ----------
    stream
        The archive, which can be sought in; it is not closed.
    name
        What errors call it.
    largest
        Bytes that its members may have together.

    Raises
    ------
    InputError
        Where it is no zip archive; a member is encrypted, compressed by another method than DEFLATE, or has the name
        of another; or the members are too many or too large.
    """

    def __init__(self, stream: BinaryIO, name: str, *, largest: int = LARGEST_ARCHIVE) -> None:
        self.name = name
        size = stream.seek(0, 2)
        try:
            self._zip = zipfile.ZipFile(stream)
        except _DAMAGE as error:
            raise InputError(f"{name} is not a zip archive that can be read: {error}") from None
        except ValueError as error:  # a negative offset
            raise InputError(f"{name} is a damaged zip archive: {error}") from None
        members = self._zip.infolist()
        self._infos = {info.filename: info for info in members}
        if len(members) > MOST_MEMBERS:
            raise InputError(f"{name} is a zip archive of {len(members):,} members; expected at most {MOST_MEMBERS:,}")
        if len(self._infos) < len(members):
            twice = repeated(info.filename for info in members)
            raise InputError(f"{name} is a zip archive with two members called {shown(twice)}; expected one")
        for info in members:
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                kind = "encrypted" if info.flag_bits & _ENCRYPTED else f"compressed by method {info.compress_type}"
                raise InputError(f"{name}: {shown(info.filename)} is {kind}; expected a plain or deflated member")
        total, most = sum(info.file_size for info in members), most_unpacked(size, largest)
        if total > most:
            raise InputError(f"{name} would unpack from {size:,} to {total:,} bytes; expected at most {most:,}")

    @property
    def names(self) -> list[str]:
        """Names of the members, in the order of the archive."""
        return list(self._infos)

    def size(self, member: str) -> int:
        """Return the bytes that a member says it has."""
        return self._infos[member].file_size

    def read(self, member: str, most: int | None = None) -> bytes:
        """Return the bytes of a member, checked against its checksum; the first `most` of them, unchecked.

        Raises
        ------
        InputError
            Where it cannot be unpacked, or has another size or checksum than it says.
        """
        info = self._infos[member]
        wanted = info.file_size if most is None else min(most, info.file_size)
        try:
            with self._zip.open(info) as stream:
                data = stream.read(wanted)
                if most is None:
                    stream.read(1)  # the checksum is compared at the end
        except _DAMAGE as error:
            raise self.damaged(member, str(error)) from None
        except (OSError, ValueError, OverflowError) as error:  # an offset outside the file
            raise self.damaged(member, str(error)) from None
        if len(data) < wanted:
            raise self.damaged(member, f"it has {len(data):,} bytes of {wanted:,}")
        return data

    def damaged(self, member: str, why: str) -> InputError:
        """Return the error about a member; `why` is what is wrong with it."""
        return InputError(f"{self.name}: {shown(member, 60)} is damaged ({why[:160]}); write it again")


#: Bytes of a header; NumPy writes 118 for an array of numbers.
LONGEST_HEADER = 2000

#: Elements that an empty array would have if its lengths of zero were one: later sums run over the other axes.
_LARGEST_EMPTY = 2**20

_MAGIC = b"\x93NUMPY"
_FIELDS = re.compile(
    r"\{(?=.*'descr':\s*'(?P<descr>[<>|=][biufUS]\d{1,9})')"
    r"(?=.*'fortran_order':\s*(?P<fortran>True|False))"
    r"(?=.*'shape':\s*\((?P<shape>(?:\d{1,18}, ?)*(?:\d{1,18})?)\))"
    r"(?:\s*'(?:descr|fortran_order|shape)':\s*(?:'[^']*'|True|False|\([\d, ]*\)),?){3}\s*\}\s*"
)


class NpzFile:
    """An opened .npz file.

    Parameters
    ----------
    stream
        The file, which can be sought in; it is not closed.
    name
        What errors call it.
    largest
        Bytes that its arrays may have together.

    Raises
    ------
    InputError
        Where it is no zip archive, or one that `ZipMembers` refuses.
    """

    def __init__(self, stream: BinaryIO, name: str, *, largest: int = 8 * 2**30) -> None:
        self._members = ZipMembers(stream, name, largest=largest)
        self._home = {member.removesuffix(".npy"): member for member in self._members.names}

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in the order of the file."""
        return list(self._home)

    def array(self, name: str) -> NDArray[Any]:
        """Return one array.

        Raises
        ------
        InputError
            Where it is of a kind that is not read, its header asks for another size than the member has, or the
            member is damaged.
        """
        member = self._home[name]
        dtype, shape, fortran, start = self._header(member)
        wanted, there = math.prod(shape) * dtype.itemsize, self._members.size(member) - start
        if wanted != there or math.prod(max(n, 1) for n in shape) > max(_LARGEST_EMPTY, there):
            raise self._members.damaged(member, f"its header asks for {wanted:,} bytes of shape {shape}, not {there:,}")
        data = self._members.read(member)
        flat = np.frombuffer(data, dtype=dtype, count=math.prod(shape), offset=start).copy()  # aligned
        if dtype.kind == "U" and not _are_characters(flat):
            raise self._members.damaged(member, "its texts hold numbers that are no characters")
        return flat.reshape(shape, order="F" if fortran else "C")

    def _header(self, member: str) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
        """Return type, shape, whether columns come first, and where the numbers begin."""
        head = self._members.read(member, 12 + LONGEST_HEADER)
        if not head.startswith(_MAGIC) or len(head) < 12:
            raise self._members.damaged(member, "it is no NumPy array")
        width = 2 if head[6] == 1 else 4
        start = 8 + width + int.from_bytes(head[8 : 8 + width], "little")
        text = head[8 + width : start].decode("latin-1")
        found = _FIELDS.fullmatch(text) if start <= len(head) else None
        if found is None:
            raise self._members.damaged(member, f"its header is {shown(text, 120)}; expected numbers or texts")
        try:
            dtype = np.dtype(found["descr"])
        except TypeError:
            raise self._members.damaged(member, f"NumPy has no type {shown(found['descr'])}") from None
        shape = tuple(int(part) for part in found["shape"].split(",") if part.strip())
        if dtype.itemsize == 0 or len(shape) > 8:
            raise self._members.damaged(member, f"it is of type {dtype} and shape {shape}")
        return dtype, shape, found["fortran"] == "True", start


def _are_characters(texts: NDArray[np.str_]) -> bool:
    """Tell whether an array of texts holds characters alone; NumPy takes any number, and Python then breaks."""
    codes = texts.view(texts.dtype.str[0] + "u4")
    return bool(((codes < 0xD800) | ((codes > 0xDFFF) & (codes <= 0x10FFFF))).all())
