"""The store: one SQLite file of answers and failures, a row a task, each committed when its task ends.

An answer is final: neither a failure nor another answer takes its place. A failure gives way to whatever comes next,
and the row counts the attempts. A damaged row counts as none, see `lbopt.runner.row`. One process writes at a time
(see `writer_lock`); any number may read meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lbopt.exceptions import InputError
from lbopt.runner.execute import noted_interrupts
from lbopt.runner.locks import WriterLock, refuse_network
from lbopt.runner.outcome import DamagedRowError, Outcome, StoreError
from lbopt.runner.row import COLUMNS, DamagedRow, Row, checked_row, seal_of
from lbopt.runner.store_file import open_to_read, open_to_write, require_ours, store_errors, version_of
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
