"""`check_store`: which rows of a store are what was written, whatever state its file is in; `rescue` saves them.

A file whose pages are damaged is not opened as a store any more. Its rows are then looked for from both ends of the
table and of the index, and read one by one, so that one bad page hides as little as possible.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.runner.locks import WriterLock
from lbopt.runner.outcome import StoreError
from lbopt.runner.row import COLUMNS, DamagedRow, Row, checked_row, seal_of
from lbopt.runner.store_file import connect_to_read, open_to_write, require_ours, structure_fault, version_of

_NAMES = ", ".join(COLUMNS)
_ADD = f"INSERT INTO results ({_NAMES}, seal) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"

#: What SQLite raises over a damaged file; UnicodeDecodeError where its own message quotes a damaged name.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)

#: The table and its index, each from both ends: SQLite gives up at the first page that it cannot read.
_SCANS = tuple(
    f"SELECT rowid, key FROM results {which} ORDER BY {by} {way}"
    for which, by in (("NOT INDEXED", "rowid"), ("INDEXED BY sqlite_autoindex_results_1", "key"))
    for way in ("ASC", "DESC")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """What a check found.

    Parameters
    ----------
    version
        Of the store's format; rows of version 1 have no seal, and are checked by key and content alone.
    sound
        How many rows are what was written.
    damaged
        The others.
    structure
        What is wrong with the file as a whole, so that rows may be missing altogether; None where nothing is.
    rows
        The columns of the sound rows, for `rescue`.
    """

    version: int
    sound: int
    damaged: tuple[DamagedRow, ...]
    structure: str | None
    rows: tuple[tuple[Any, ...], ...] = field(repr=False)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and self.structure is None


def check_store(path: Path) -> StoreCheck:
    """Read every row of a store that can be read, and check it.

    Parameters
    ----------
    path
        The store; it is not changed.

    Raises
    ------
    StoreError
        If it is no store, of an unknown version, or so damaged that it has no table any more.
    """
    place = path.resolve()
    if not place.exists():
        raise StoreError(f"there is no store at {path}")
    require_ours(place)
    if place.stat().st_size == 0:
        raise StoreError(f"{path} is empty; the first run makes a store of it")
    connection: sqlite3.Connection | None = None
    try:
        connection = connect_to_read(place)
        return _checked(connection)
    except _UNREADABLE as error:
        raise StoreError(f"store {path} is damaged beyond reading ({_said(error)}); run its command again") from None
    finally:
        if connection is not None:
            connection.close()


def rescue(found: StoreCheck, path: Path) -> None:
    """Write the sound rows of a check to a new store.

    Parameters
    ----------
    path
        The new store; nothing may be there.

    Raises
    ------
    InputError
        If something is there already.
    """
    if path.exists():
        raise InputError(f"'{path}' exists; give the name of a new file for the rescued rows")
    place = path.resolve()
    require_ours(place)
    lock = WriterLock(place)
    try:
        connection = open_to_write(place)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_ADD, ((*row, seal_of(row)) for row in found.rows))
            connection.execute("COMMIT")
        finally:
            connection.close()
    finally:
        lock.release()


def _checked(connection: sqlite3.Connection) -> StoreCheck:
    structure = _structure(connection)
    version = version_of(connection)
    sound: dict[str, tuple[Any, ...]] = {}
    damaged: list[DamagedRow] = []
    found_keys = _found(connection)
    seal = "seal" if version > 1 else "NULL"
    for number, key in sorted(found_keys.items()):
        try:
            found = connection.execute(f"SELECT {_NAMES}, {seal} FROM results WHERE rowid = ?", (number,)).fetchone()
        except _UNREADABLE as error:
            damaged.append(DamagedRow(key=key, why=f"row {number} cannot be read ({_said(error)})"))
            continue
        if found is None:  # known from the index alone
            damaged.append(DamagedRow(key=key, why=f"row {number} is missing, and the index names it"))
            continue
        row = checked_row(found[:-1], found[-1], sealed=version > 1)
        if isinstance(row, Row):
            sound[row.task.key] = found[:-1]
        else:
            damaged.append(row)
    damaged = [row for row in damaged if row.key not in sound]  # what is left of a row that was found whole as well
    return StoreCheck(
        version=version,
        sound=len(sound),
        damaged=tuple(damaged),
        structure=structure,
        rows=tuple(sound[key] for key in sorted(sound)),
    )


def _structure(connection: sqlite3.Connection) -> str | None:
    try:
        return structure_fault(connection)
    except _UNREADABLE as error:
        return _said(error)


def _found(connection: sqlite3.Connection) -> dict[int, str | None]:
    """Return the numbers of all rows that some way leads to, each with the key that stands there."""
    keys: dict[int, str | None] = {}
    for scan in _SCANS:
        for number, key in _until_unreadable(connection, scan):
            keys[number] = key if isinstance(key, str) else keys.get(number)
    return keys


def _until_unreadable(connection: sqlite3.Connection, query: str) -> Iterator[tuple[int, object]]:
    try:
        yield from connection.execute(query)
    except _UNREADABLE:  # the other scans find more
        return


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200].encode("ascii", "backslashreplace").decode("ascii")
