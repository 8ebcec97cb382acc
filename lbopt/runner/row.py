"""A row of a store: what is known of one task, and how the row proves that it is what was written.

Every row carries its seal, the SHA-256 of all its other columns. The key is the SHA-256 of the task beside it. A row
whose seal, key or content does not fit is damaged: it is never taken for an answer.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.runner.outcome import Failure
from lbopt.runner.task import Task

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
