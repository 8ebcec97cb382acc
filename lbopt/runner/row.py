"""One row of a store: an outcome, sealed, and what can go wrong around the tasks.

What can go wrong around the tasks; what goes wrong inside a task is stored as its failure.

What travels with every row: the versions that can move a number, and the kind of machine. No host, no path.

How a task ended: with an answer, as canonical JSON, or with a failure. Never both, never neither.

A row of a store: what is known of one task, and how the row proves that it is what was written.

Every row carries its seal, the SHA-256 of all its other columns. The key is the SHA-256 of the task beside it. A row
whose seal, key or content does not fit is damaged: it is never taken for an answer.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lbopt.exceptions import InputError, LbOptError
from lbopt.runner.task import Task


class StoreError(LbOptError):
    """A store cannot be used: not ours, of another version, damaged, being written, or without the answer asked for."""


class DamagedRowError(StoreError):
    """A row of a store is not what was written: its hash, its key or its content does not fit."""


class EngineError(LbOptError):
    """An engine cannot do its work: its processes die before a task begins, or it answers for a task not given."""


_PACKAGES = ("numpy", "numba")


@cache
def _found() -> tuple[tuple[str, str], ...]:
    root = sys.modules[__name__.partition(".")[0]]  # loaded already, and above this room: not to be imported here
    found = [
        (root.__name__, root.__version__),
        ("python", platform.python_version()),
        ("system", platform.system()),
        ("machine", platform.machine()),
    ]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))  # reads what is installed, imports nothing
        except PackageNotFoundError:
            continue
    return tuple(found)


def provenance() -> dict[str, str]:
    """Return the versions and the machine of this process."""
    return dict(_found())


def utc_now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_LONGEST_MESSAGE = 2_000
_LONGEST_TRACEBACK = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no answer.

    Parameters
    ----------
    kind
        "raised": the function raised, or could not be imported. "unstorable": its result is nothing that JSON holds.
        "died": its process ended without an answer. "killed": it was stopped after `kill_after` seconds.
    exception
        Type of the exception; empty where there is none.
    message
        One sentence; overlong ones are cut.
    traceback
        The traceback as text, or the last words of a process that died; the beginning of an overlong one is cut.
    """

    kind: str
    exception: str
    message: str
    traceback: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _writable(self.message)[:_LONGEST_MESSAGE])
        object.__setattr__(self, "traceback", _writable(self.traceback)[-_LONGEST_TRACEBACK:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one task.

    Parameters
    ----------
    key
        That of the task.
    answer
        Canonical JSON of what the function returned; None where it failed.
    failure
        Why there is no answer; None where there is one.
    seconds
        Wall time of the call itself; of the whole process where that died or was killed.
    finished
        When, in UTC.
    provenance
        Versions and machine of the process that ran it.
    """

    key: str
    answer: str | None = None
    failure: Failure | None = None
    seconds: float
    finished: str = field(default_factory=utc_now)
    provenance: dict[str, str] = field(default_factory=provenance)

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.failure is None):
            raise ValueError(f"outcome of task {self.key} needs an answer or a failure, and not both")

    @property
    def status(self) -> str:
        """Return "done" or "failed"."""
        return "done" if self.failure is None else "failed"

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str | bytes) -> Outcome:
        """Return the outcome that `to_json` wrote."""
        content: dict[str, Any] = json.loads(line)
        failure = content.pop("failure")
        return cls(failure=None if failure is None else Failure(**failure), **content)


def _writable(text: str) -> str:
    """Return `text` with the halves of characters that no file can hold written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


#: All columns of a row but the seal, in the order in which they are sealed.
COLUMNS = (
    *("key", "task", "status", "answer", "kind", "exception", "message", "traceback"),
    *("attempts", "seconds", "finished", "provenance"),
)

_SURROGATE = re.compile("[\ud800-\udfff]")

_FAILURE = ("kind", "exception", "message", "traceback")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRow:
    """A row that is not what was written.

    Parameters
    ----------
    key
        As it stands in the file; None where it cannot be read.
    why
        What does not fit.
    """

    key: str | None
    why: str

    def __str__(self) -> str:
        known = isinstance(self.key, str) and self.key.isascii() and self.key.isalnum()
        return f"{self.key[:64] if known and self.key else 'a row without a readable key'}: {self.why}"


def seal_of(values: Sequence[object]) -> str:
    """Return the seal of a row.

    Parameters
    ----------
    values
        Those of `COLUMNS`, in that order.
    """
    text = json.dumps(list(values), separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def checked_row(values: Sequence[Any], seal: object = None, *, sealed: bool = True) -> Row | DamagedRow:
    """Return the row, or what is wrong with it.

    Parameters
    ----------
    values
        Those of `COLUMNS`, as SQLite gives them.
    sealed
        Whether there is one: stores of version 1 have none, and their rows are checked by their keys and content alone.
    """
    found = dict(zip(COLUMNS, values, strict=True))
    key = found["key"] if isinstance(found["key"], str) else None
    try:
        if sealed:
            _demand(isinstance(seal, str) and seal == _seal(values), "its hash is not that of its content")
        return _row(found)
    except _Damage as damage:
        return DamagedRow(key=key, why=str(damage))


class _Damage(Exception):
    """What is wrong with a row."""


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Damage(otherwise)


def _seal(values: Sequence[Any]) -> str:
    _demand(not any(isinstance(value, bytes) for value in values), "it holds bytes in place of text")
    return seal_of(values)


def _row(found: dict[str, Any]) -> Row:
    texts = ("key", "task", "status", "finished", "provenance")
    for name in texts:
        _demand(_is_text(found[name]), f"its {name} is no text")
    status, attempts, seconds = found["status"], found["attempts"], found["seconds"]
    _demand(status in ("done", "failed"), "its status is neither done nor failed")
    _demand(isinstance(attempts, int) and attempts > 0, "its attempts are no count")
    _demand(isinstance(seconds, int | float) and 0 <= seconds < math.inf, "its seconds are no duration")
    task = _task(found["task"])
    _demand(task.text == found["task"] and task.key == found["key"], "its task is not the one of its key")
    provenance = _parsed(found["provenance"], "provenance")
    _demand(isinstance(provenance, dict), "its provenance is no object")
    answer, failure = None, None
    if status == "done":
        _demand(_is_text(found["answer"]), "it has no answer")
        answer = _parsed(found["answer"], "answer")
    else:
        _demand(all(_is_text(found[name]) for name in _FAILURE), "it does not say why there is no answer")
        failure = Failure(**{name: found[name] for name in _FAILURE})
    return Row(
        task=task,
        status=status,
        answer=answer,
        failure=failure,
        attempts=attempts,
        seconds=seconds,
        finished=found["finished"],
        provenance=provenance,
    )


def _task(text: str) -> Task:
    try:
        return Task.from_text(text)
    except (InputError, KeyError, TypeError, ValueError, RecursionError):
        raise _Damage("its task cannot be read") from None


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Damage(f"its {name} cannot be read") from None


def _is_text(value: object) -> bool:
    """Tell a text from other values, and from bytes that are no UTF-8, which `store_file` gives as surrogates."""
    return isinstance(value, str) and (value.isascii() or _SURROGATE.search(value) is None)
