"""How a task ended: with an answer, as canonical JSON, or with a failure. Never both, never neither."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from lbopt.runner.provenance import provenance, utc_now

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
