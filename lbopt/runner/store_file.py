"""Opens the file of a store: is it one, is it whole, is it of a known version? A file that is not is never changed.

Two numbers in SQLite's header say what a file is: `application_id` that it is a store of ours, `user_version` of which
version. They are read before anything is locked, in a mode in which SQLite neither writes nor recovers.

Version 2 added the seal of each row (see `lbopt.runner.row`). A store of version 1 is read as it is, and becomes one of
version 2 when it is next opened to write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.runner.row import COLUMNS, Row, StoreError, checked_row, seal_of

#: "lbrs" in ASCII: what makes a SQLite file one of ours.
APPLICATION_ID = 0x6C627273

#: Raise it whenever the table changes.
STORE_VERSION = 2

#: Versions that can be read.
READABLE = (1, 2)

# A reader holds its lock for milliseconds, and so does a commit; one that finds the other's waits so long.
_WAIT_SECONDS = 60.0

# `task` is the text that was hashed to `key`, so a row proves itself. `answer`, `provenance` and `task` are JSON, and
# SQLite's json_extract reads them.
_TABLE = """
CREATE TABLE results (
    key TEXT PRIMARY KEY NOT NULL,
    task TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    answer TEXT,
    kind TEXT,
    exception TEXT,
    message TEXT,
    traceback TEXT,
    attempts INTEGER NOT NULL,
    seconds REAL NOT NULL,
    finished TEXT NOT NULL,
    provenance TEXT NOT NULL,
    seal TEXT NOT NULL DEFAULT '',
    CHECK ((status = 'done') = (answer IS NOT NULL)),
    CHECK ((status = 'failed') = (kind IS NOT NULL))
)
"""


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the store at `path`, made if there is none; the caller holds the writer's lock."""
    require_ours(path)
    with store_errors(path):
        connection = _connected(path, "rwc")
        try:
            connection.execute("PRAGMA synchronous=FULL")  # a commit survives a power cut
            if _is_empty(connection):
                _create(connection)
            require_whole(connection, path)
            if version_of(connection) < STORE_VERSION:
                _migrate(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open the store at `path`, which must exist, for queries alone."""
    if not path.exists():
        raise StoreError(f"there is no store at {path}; the first run makes it")
    require_ours(path)
    with store_errors(path):
        connection = connect_to_read(path)
        try:
            if _is_empty(connection):
                raise StoreError(f"{path} is empty; the first run makes a store of it")
            require_whole(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect for queries alone, whatever state the file is in."""
    connection = _connected(path, "rw")  # "ro" could not take back what a killed writer left half-written
    connection.execute("PRAGMA query_only=ON")
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of an open store."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose pages, index or columns are damaged; what stands inside a row is for `checked_row`."""
    found = structure_fault(connection)
    if found is not None:
        raise StoreError(
            f"store {path} is damaged ({found}); `lbopt verify FILE --rescue NEW` saves the rows that can be "
            "read, or move it away and run again"
        )


def structure_fault(connection: sqlite3.Connection) -> str | None:
    """Return what is wrong with the file as a whole, or None."""
    connection.execute("PRAGMA ignore_check_constraints=ON")  # a value that no row may have is damage of that row
    found = " ".join(str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
    if found != "ok":
        return found[:200].encode("ascii", "backslashreplace").decode("ascii")
    objects = connection.execute("SELECT type, tbl_name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    names = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    sealed = ["seal"] if version_of(connection) > 1 else []
    if objects != [("table", "results")] or names != [*COLUMNS, *sealed]:
        return "its table is not that of a store"
    odd = "typeof(key) <> 'text' OR length(key) <> 64 OR key GLOB '*[^0-9a-f]*'"
    if connection.execute(f"SELECT EXISTS (SELECT 1 FROM results WHERE {odd})").fetchone()[0]:
        return "a key is not one of a task"
    return None


def require_ours(path: Path) -> None:
    """Refuse anything but a store of this version, an empty file, or nothing at a place where a file can be."""
    if not path.parent.is_dir():
        raise InputError(f"store {path} cannot be made: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise InputError(f"store {path} is not a file; give the path of a file")
    if not path.exists() or path.stat().st_size == 0:
        return
    application, version = _header(path)
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is no store of lbopt's runner; it was left as it is: give another path")
    if version not in READABLE:
        raise StoreError(
            f"store {path} is of version {version}, and this lbopt reads versions up to {STORE_VERSION}; it was left "
            "as it is: give another path, or use the lbopt that wrote it"
        )


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences about the store."""
    try:
        yield
    except sqlite3.Error as error:
        # errors of the sqlite3 module itself, such as the use of a closed store, have no code
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            why = f"another program has kept it locked for {_WAIT_SECONDS:.0f} s; close the program that reads it"
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            why = (
                f"it is damaged ({error}); `lbopt verify FILE --rescue NEW` saves the rows that can be read, or "
                "move it away and run again"
            )
        elif code == sqlite3.SQLITE_FULL:
            why = "the disk is full; make room and run again, what was stored is kept"
        elif code == sqlite3.SQLITE_IOERR:
            why = (
                f"the disk does not take or give data ({error}); is a quota or a limit of file sizes reached? "
                "What was stored is kept: mend that and run again"
            )
        else:
            why = str(error)
        raise StoreError(f"store {path} cannot be used: {why}") from error
    except UnicodeDecodeError as error:  # of SQLite's own message, which quotes a damaged name of the schema
        raise StoreError(
            f"store {path} cannot be used: the names in its schema are damaged; `lbopt verify FILE --rescue NEW` "
            "saves the rows that can be read, or move it away and run again"
        ) from error


def _header(path: Path) -> tuple[int, int]:
    """Return application id and version as the header has them, without a lock; (0, 0) where it is not SQLite's.

    It is read through SQLite because a file that is opened and closed by hand takes all of this process's locks on it
    away (POSIX), those of a store that is open here included.
    """
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        connection.execute(
            "PRAGMA writable_schema=ON"
        )  # read the header also where a killed writer left the file short
        application: int = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return 0, 0
        raise StoreError(f"cannot read {path}: {error}") from None
    finally:
        connection.close()
    return application, version


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema=OFF")  # the file may come from elsewhere
    connection.text_factory = _text
    return connection


def _text(content: bytes) -> str:
    """Return a text; bytes that are no UTF-8 become surrogates, so that one damaged row does not hide the others."""
    return content.decode("utf-8", "surrogateescape")


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0


def _create(connection: sqlite3.Connection) -> None:
    """Make header and table in one transaction: a file that is killed half-made is an empty one."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={STORE_VERSION}")
    connection.execute(_TABLE)
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection) -> None:
    """Give every row of a store of version 1 its seal, in one transaction; a row that is damaged gets none."""
    names = ", ".join(COLUMNS)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("ALTER TABLE results ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
        for number, *values in connection.execute(f"SELECT rowid, {names} FROM results").fetchall():
            if isinstance(checked_row(values, sealed=False), Row):
                connection.execute("UPDATE results SET seal = ? WHERE rowid = ?", (seal_of(values), number))
        connection.execute(f"PRAGMA user_version={STORE_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
