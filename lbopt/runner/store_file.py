"""Opens the file of a store: is it one, is it whole, is it of this version? A file that is not is never changed.

Two numbers in SQLite's header say what a file is: `application_id` that it is a store of ours, `user_version` of which
version. They are read before anything is locked, in a mode in which SQLite neither writes nor recovers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.runner.errors import StoreError

#: "lbrs" in ASCII: what makes a SQLite file one of ours.
APPLICATION_ID = 0x6C627273

#: Raise it whenever the table changes.
STORE_VERSION = 1

# A reader holds its lock for milliseconds, and so does a commit; whoever finds the other's waits so long.
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
    CHECK ((status = 'done') = (answer IS NOT NULL)),
    CHECK ((status = 'failed') = (kind IS NOT NULL))
)
"""


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the store at `path`, made if there is none; whoever calls holds the writer's lock."""
    require_ours(path)
    with store_errors(path):
        connection = _connected(path, "rwc")
        try:
            connection.execute("PRAGMA synchronous=FULL")  # a commit survives a power cut
            if _is_empty(connection):
                _create(connection)
            found = " ".join(connection.execute("PRAGMA quick_check(1)").fetchone()[0].split())
            if found != "ok":
                raise StoreError(f"store {path} is damaged ({found}); move it away and run again")
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
        connection = _connected(path, "rw")  # "ro" could not take back what a killed writer left half-written
        connection.execute("PRAGMA query_only=ON")
        if _is_empty(connection):
            connection.close()
            raise StoreError(f"{path} is empty; the first run makes a store of it")
    return connection


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
    if version != STORE_VERSION:
        raise StoreError(
            f"store {path} is of version {version}, and this lbopt reads version {STORE_VERSION}; it was left as it "
            "is: give another path, or use the lbopt that wrote it"
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
            why = f"it is damaged ({error}); move it away and run again"
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
    return sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)


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
