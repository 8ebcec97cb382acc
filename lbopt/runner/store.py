"""The store: one SQLite file of answers and failures, a row a task, each committed when its task ends.

An answer is final: neither a failure nor another answer takes its place. A failure gives way to whatever comes next,
and the row counts the attempts. One process writes at a time (see `writer_lock`); any number may read meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lbopt.exceptions import InputError
from lbopt.runner.canonical import canonical_json
from lbopt.runner.errors import StoreError
from lbopt.runner.file_system import refuse_network
from lbopt.runner.interrupts import held_interrupts
from lbopt.runner.outcome import Failure, Outcome
from lbopt.runner.store_file import open_to_read, open_to_write, require_ours, store_errors
from lbopt.runner.task import Task
from lbopt.runner.writer_lock import WriterLock

if TYPE_CHECKING:
    from pandas import DataFrame

_COLUMNS = "key, task, status, answer, kind, exception, message, traceback, attempts, seconds, finished, provenance"

_PUT = f"""
INSERT INTO results ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    status = excluded.status, answer = excluded.answer,
    kind = excluded.kind, exception = excluded.exception, message = excluded.message, traceback = excluded.traceback,
    attempts = attempts + 1,
    seconds = excluded.seconds, finished = excluded.finished, provenance = excluded.provenance
WHERE status = 'failed'
"""

_PAGE = f"SELECT {_COLUMNS} FROM results WHERE key > ? AND (? IS NULL OR status = ?) ORDER BY key LIMIT 256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a store holds of a task.

    Parameters
    ----------
    task
        The task itself.
    status
        "done" or "failed".
    answer
        What the function returned; None where it failed, and where it returned None.
    failure
        Why there is no answer; None where there is one.
    attempts
        How often it was run to an end.
    seconds, finished
        Of the last attempt: wall time, and when it ended, in UTC.
    provenance
        Of the last attempt: versions, machine, engine and what the caller added.
    """

    task: Task
    status: str
    answer: Any
    failure: Failure | None
    attempts: int
    seconds: float
    finished: str
    provenance: dict[str, Any]


class Store:
    """Open the store at `path`, to write (it is made if there is none) or to read only. Close it, or use `with`."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path).resolve()  # one file has one lock, whatever it is called
        self.read_only = read_only
        self._lock: WriterLock | None = None
        require_ours(self.path)
        if read_only:
            self._connection = open_to_read(self.path)
            return
        refuse_network(self.path)
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
        values = (task.key, task.text, outcome.status, outcome.answer, *why, outcome.seconds, outcome.finished, origin)
        with store_errors(self.path), held_interrupts():
            return self._connection.execute(_PUT, values).rowcount == 1

    def get(self, task: Task) -> Row | None:
        """Return what is stored of the task, or None."""
        found = self._read(f"SELECT {_COLUMNS} FROM results WHERE key = ?", task.key)
        return _row(found[0]) if found else None

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

        Rows are read by the hundred, and no lock is held between: a writer may go on meanwhile.
        """
        if status not in (None, "done", "failed"):
            raise InputError(f"status is {status!r}; expected 'done', 'failed' or None")
        last = ""
        while page := self._read(_PAGE, last, status, status):
            last = page[-1][0]
            yield from map(_row, page)

    def statuses(self) -> dict[str, str]:
        """Return "done" or "failed" by key."""
        return dict(self._read("SELECT key, status FROM results"))

    def to_frame(self) -> DataFrame:
        """Return all rows as a table for notebooks; see `lbopt.runner.frame` for its columns and their types."""
        from lbopt.runner.frame import frame_of

        return frame_of(self.rows())

    def __len__(self) -> int:
        count: int = self._read("SELECT count(*) FROM results")[0][0]
        return count

    def _read(self, query: str, *values: object) -> list[Any]:
        with store_errors(self.path):
            return self._connection.execute(query, values).fetchall()


def _row(values: tuple[Any, ...]) -> Row:
    _, task, status, answer, kind, exception, message, traceback, attempts, seconds, finished, origin = values
    failed = status == "failed"
    return Row(
        task=Task.from_text(task),
        status=status,
        answer=None if failed else json.loads(answer),
        failure=Failure(kind=kind, exception=exception, message=message, traceback=traceback) if failed else None,
        attempts=attempts,
        seconds=seconds,
        finished=finished,
        provenance=json.loads(origin),
    )
