"""Arrays of an .npz file: the header of each is read and compared with the member's size before anything is allocated.

NumPy's own reader evaluates a header as Python, allocates what it asks for, and unpickles on request. Here a header is
three fields of plain numbers, and only arrays of numbers, truth values and texts are read.
"""

from __future__ import annotations

import math
import re
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lbopt.files.shown import shown
from lbopt.files.zip_members import ZipMembers

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
