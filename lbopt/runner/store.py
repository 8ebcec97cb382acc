"""The store: one SQLite file of answers and failures, a row a task, each committed when its task ends.

An answer is final: neither a failure nor another answer takes its place. A failure gives way to whatever comes next,
and the row counts the attempts. A damaged row counts as none, see `lbopt.runner.row`. One process writes at a time
(see `writer_lock`); any number may read meanwhile.

`check_store`: which rows of a store are what was written, whatever state its file is in; `rescue` saves them.

A file whose pages are damaged is not opened as a store any more. Its rows are then looked for from both ends of the
table and of the index, and read one by one, so that one bad page hides as little as possible.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lbopt.exceptions import InputError
from lbopt.runner.execute import noted_interrupts
from lbopt.runner.locks import WriterLock, refuse_network
from lbopt.runner.row import COLUMNS, DamagedRow, DamagedRowError, Outcome, Row, StoreError, checked_row, seal_of
from lbopt.runner.store_file import (
    connect_to_read,
    open_to_read,
    open_to_write,
    require_ours,
    store_errors,
    structure_fault,
    version_of,
)
from lbopt.runner.task import Task, canonical_json

if TYPE_CHECKING:
    from pandas import DataFrame


_NAMES = ", ".join(COLUMNS)

# One process writes, so a row that was read is still the same when it is replaced.
_PUT = f"INSERT OR REPLACE INTO results ({_NAMES}, seal) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"

_log = logging.getLogger(__name__)


class Store:
    """Open the store at `path`, to write (it is made if there is none) or to read only. Close it, or use `with`."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path).resolve()  # one file has one lock, whatever it is called
        self.read_only = read_only
        self._lock: WriterLock | None = None
        require_ours(self.path)
        if read_only:
            self._connection = open_to_read(self.path)
            self._sealed = version_of(self._connection) > 1
            self._columns = f"{_NAMES}, {'seal' if self._sealed else 'NULL'}"
            return
        refuse_network(self.path)
        self._sealed, self._columns = True, f"{_NAMES}, seal"
        self._lock = WriterLock(self.path)
        try:
            self._connection = open_to_write(self.path)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let the next writer in; closing twice does nothing."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def put(self, task: Task, outcome: Outcome, provenance: Mapping[str, Any] | None = None) -> bool:
        """Store how `task` ended, with more provenance if given; return False where its answer was there already.

        When this returns, the row is on the disk. Ctrl-C waits until then.
        """
        if self.read_only:
            raise InputError(f"store {self.path} is open to read only; open it to write")
        if outcome.key != task.key:
            raise InputError(f"outcome of task {outcome.key} was given as that of task {task.key}")
        failure = outcome.failure
        why = (failure.kind, failure.exception, failure.message, failure.traceback) if failure else (None,) * 4
        origin = canonical_json(outcome.provenance | dict(provenance or {}), "provenance")
        before = self._checked(task.key)
        if isinstance(before, Row) and before.failure is None:
            return False
        attempts = before.attempts + 1 if isinstance(before, Row) else 1
        row = (task.key, task.text, outcome.status, outcome.answer, *why)
        values = (*row, attempts, float(outcome.seconds), outcome.finished, origin)
        with store_errors(self.path), noted_interrupts(act=False):
            self._connection.execute(_PUT, (*values, seal_of(values)))
        return True

    def get(self, task: Task) -> Row | None:
        """Return what is stored of the task, or None.

        Raises
        ------
        DamagedRowError
            If its row is damaged; `run_tasks` computes it again.
        """
        found = self._checked(task.key)
        if isinstance(found, DamagedRow):
            raise DamagedRowError(f"store {self.path} has a damaged row of {task}: {found.why}; run it again")
        return found

    def answer(self, task: Task) -> Any:
        """Return the answer of the task; a StoreError says why there is none."""
        row = self.get(task)
        if row is None:
            raise StoreError(f"store {self.path} has no answer of {task}: it was not run")
        if row.failure is not None:
            raise StoreError(
                f"store {self.path} has no answer of {task}: it failed ({row.failure.kind}, attempt {row.attempts}): "
                f"{row.failure.exception} {row.failure.message}"
            )
        return row.answer

    def rows(self, status: str | None = None) -> Iterator[Row]:
        """Go through all rows in the order of their keys, or those that are "done", or "failed".

        Rows are read by the hundred, and no lock is held between: a writer may go on meanwhile. Damaged rows are left
        out and counted in a warning; `damaged` returns them.
        """
        if status not in (None, "done", "failed"):
            raise InputError(f"status is {status!r}; expected 'done', 'failed' or None")
        left_out = 0
        for row in self._all():
            if isinstance(row, DamagedRow):
                left_out += 1
            elif status in (None, row.status):
                yield row
        if left_out:
            _log.warning(
                "damaged rows of store %s that were left out: %d; `lbopt verify` names them, and the command that "
                "filled the store computes them again",
                *(self.path, left_out),
            )

    def damaged(self) -> list[DamagedRow]:
        """Return the damaged rows, in the order of their keys."""
        return [row for row in self._all() if isinstance(row, DamagedRow)]

    def statuses(self) -> dict[str, str]:
        """Return "done" or "failed" by key; a damaged row counts as none, and a warning says how many there are."""
        return {row.task.key: row.status for row in self.rows()}

    def to_frame(self) -> DataFrame:
        """Return all rows as a table for notebooks; see `lbopt.runner.export` for its columns and their types."""
        from lbopt.runner.export import frame_of

        return frame_of(self.rows())

    def __len__(self) -> int:
        count: int = self._read("SELECT count(*) FROM results")[0][0]
        return count

    def _all(self) -> Iterator[Row | DamagedRow]:
        last = ""
        while page := self._read(f"SELECT {self._columns} FROM results WHERE key > ? ORDER BY key LIMIT 256", last):
            last = page[-1][0]
            for values in page:
                yield checked_row(values[:-1], values[-1], sealed=self._sealed)

    def _checked(self, key: str) -> Row | DamagedRow | None:
        found = self._read(f"SELECT {self._columns} FROM results WHERE key = ?", key)
        return checked_row(found[0][:-1], found[0][-1], sealed=self._sealed) if found else None

    def _read(self, query: str, *values: object) -> list[Any]:
        with store_errors(self.path):
            return self._connection.execute(query, values).fetchall()


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
