"""What can go wrong around the tasks; what goes wrong inside a task is stored as its failure.

What travels with every row: the versions that can move a number, and the kind of machine. No host, no path.

How a task ended: with an answer, as canonical JSON, or with a failure. Never both, never neither.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lbopt.exceptions import LbOptError


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
