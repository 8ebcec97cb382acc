"""When an engine counts as down: failures in a row, and nothing heard from it meanwhile."""

from __future__ import annotations


class Breaker:
    """Counts the failures of one engine.

    A failure is a connection that cannot be made or breaks before an answer, a status that says the engine is not
    there, or a look at its health without an answer. Any answer closes the breaker, and so does a chunk of a running
    stream: an engine that is too busy for a look at its health but streams is not down.

    Parameters
    ----------
    failures
        In a row, after which the engine counts as down.
    """

    __slots__ = ("count", "failures", "since")

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.count = 0
        self.since = 0.0

    def fail(self, at: float) -> None:
        """Note a failure."""
        if self.count == 0:
            self.since = at
        self.count += 1

    def succeed(self) -> None:
        """Note an answer."""
        self.count = 0

    def is_open(self, last_heard: float) -> bool:
        """Return whether the engine counts as down; `last_heard` is the time of its last chunk."""
        return self.count >= self.failures and last_heard <= self.since


def delay(attempt: int, base: float, cap: float) -> float:
    """Return the seconds before retry number `attempt`, from 1: `base`, doubled each time, at most `cap`."""
    return float(min(cap, base * 2.0 ** (attempt - 1)))
