"""The members of a zip archive, each unpacked within the size that it states, all of them within a limit.

The directory of an archive is a claim: sizes may be false, members may overlap, two may have one name. Sizes are added
up before anything is unpacked, and no member is unpacked beyond its own.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import BinaryIO

from lbopt.exceptions import InputError
from lbopt.files.expansion import most_unpacked
from lbopt.files.shown import repeated, shown

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
