"""The right to write a store: an exclusive lock of the operating system on an empty file beside it.

Readers lock the store itself, for moments; this lock is apart from it, so they can read while a writer works. It is a
lock, not the existence of a file: the system drops it when its process ends, also by kill -9. It is taken through
SQLite because that locks on every system, within a process too.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from lbopt.runner.errors import StoreError

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
