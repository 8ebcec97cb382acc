"""Which kind of file system a path lies on, where the system says so: Linux, in /proc/self/mountinfo.

SQLite trusts the locks and the flushes of the file system. Those of network file systems are known to be unreliable
(https://www.sqlite.org/faq.html#q5): two writers may both believe to be alone, and a commit may be lost after it was
acknowledged. So a store is not written there, unless the user takes it upon himself.

The right to write a store: an exclusive lock of the operating system on an empty file beside it.

Readers lock the store itself, for moments; this lock is apart from it, so they can read while a writer works. It is a
lock, not the existence of a file: the system drops it when its process ends, also by kill -9. It is taken through
SQLite because that locks on every system, within a process too.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from lbopt.runner.row import StoreError

#: Set to 1, it lets a store be written on a network file system.
OVERRIDE = "LBOPT_NETWORK_STORE"

#: Types as mountinfo spells them.
# fmt: off
NETWORK = frozenset((
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "fuse.ceph", "fuse.ceph-fuse",
    "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs", "fuse.moosefs", "fuse.rclone", "fuse.s3fs",
    "fuse.seaweedfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "orangefs",
    "panfs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "wekafs",
))
# fmt: on

_MOUNTS = Path("/proc/self/mountinfo")


def refuse_network(store: Path) -> None:
    """Refuse to write `store`, an absolute path without links, on a network file system; say nothing if in doubt."""
    if os.environ.get(OVERRIDE) == "1":
        return
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = kind_of(store, mounts)
    if kind in NETWORK:
        raise StoreError(
            f"store {store} lies on a network file system ({kind}), where SQLite's locks and commits cannot be relied "
            f"on; give a path on a local disk, such as /tmp, and copy the store when the run has ended, or set "
            f"{OVERRIDE}=1 if no other machine writes it"
        )


def kind_of(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that `path` lies on, by a text such as /proc/self/mountinfo; or None.

    A mount lies over what was mounted at its place or above it before: the longest mount point wins, and of equal ones
    the last.
    """
    best, found = -1, None
    for line in mounts.splitlines():
        fields, dash, behind = line.partition(" - ")
        words, kinds = fields.split(" "), behind.split(" ")
        if not dash or len(words) < 5 or not kinds[0]:
            continue
        point = Path(_unescaped(words[4]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), kinds[0]
    return found


def _unescaped(text: str) -> str:
    """Return `text` with space, tab, newline and backslash, which mountinfo writes as octal numbers, put back."""
    for code in ("040", "011", "012", "134"):  # the backslash last: it begins the others
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


#: Two that begin at the same moment get in each other's way; after this long one of them has the lock.
_PATIENCE_SECONDS = 0.2


class WriterLock:
    """Held from construction to `release`."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + "-lock")
        self._connection = self._taken(store)
        while not self._path.exists():  # its owner has just released and removed it: the next process would not see it
            self._connection.close()
            self._connection = self._taken(store)

    def release(self) -> None:
        """Give the right back; the empty file goes with it. Releasing twice does nothing."""
        if self._held():
            with suppress(OSError):
                self._path.unlink(missing_ok=True)  # while it is still held: so that no other process's lock is removed
            self._connection.close()

    def _held(self) -> bool:
        try:
            return self._connection.in_transaction
        except sqlite3.ProgrammingError:  # closed
            return False

    def _taken(self, store: Path) -> sqlite3.Connection:
        if self._path.is_symlink():  # SQLite would make, or lock, whatever it leads to
            raise StoreError(f"store {store} cannot be written: {self._path} is a link; remove it")
        try:
            connection = sqlite3.connect(self._path, timeout=_PATIENCE_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"store {store} cannot be written: {self._path}: {error}") from None
        try:
            connection.execute("PRAGMA journal_mode=OFF")  # nothing is ever written
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StoreError(
                    f"store {store} is being written by another run; wait for that to end, or open it to read only"
                ) from None
            raise StoreError(f"store {store} cannot be written: {self._path}: {error}") from None
        return connection
