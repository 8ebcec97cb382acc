"""The rows of the table: what goes wrong with one engine of three, with the router, or with its clients."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Parameters
    ----------
    name
        As in the table.
    fault, everywhere
        Of the first engine or of all, out of `engine.FAULTS`.
    whole
        Whether every client has to get its whole answer, since another engine can give it.
    signals
        What the first engine or the router gets, and how many seconds after the first third of the clients has come.
    to_router
        Whether the router gets them.
    requests, at_once
        Clients in all, and at the same time.
    tokens, spacing
        Of an answer, and the seconds between two of them.
    patience
        Seconds that a client waits for its whole answer.
    goes
        Every so-manieth client goes before it has it; 0 = none.
    changes
        Whether each engine has another fault every second or so, half of the time none.
    """

    name: str
    fault: str = "none"
    everywhere: bool = False
    whole: bool = False
    signals: tuple[tuple[float, int], ...] = ()
    to_router: bool = False
    requests: int = 60
    at_once: int = 6
    tokens: int = 8
    spacing: float = 0.005
    patience: float = 10.0
    goes: int = 0
    changes: bool = False

    @property
    def faults(self) -> tuple[str, ...]:
        """What each engine has."""
        return (self.fault,) * 3 if self.everywhere else (self.fault, "none", "none")


ROWS = (
    Row("reset before the head", "reset-before-head", whole=True),
    Row("reset before the body", "reset-before-body", whole=True),
    Row("reset after an event", "reset-after-event"),
    Row("reset in an event", "reset-in-event"),
    Row("garbage instead of HTTP", "garbage", whole=True),
    Row("500", "500", whole=True),
    Row("503", "503", whole=True),
    Row("429", "429", whole=True),
    Row("429 with Retry-After", "429-retry-after", whole=True),
    Row("first byte after 3 s", "slow", whole=True),
    Row("500 every other time", "every-other", whole=True),
    Row("500 every other time, all three", "every-other", everywhere=True),
    Row("401: the key of another", "401", whole=True),
    Row("a page instead of an answer", "page", whole=True),
    Row("[DONE] alone, or {}", "nothing", whole=True),
    Row("usage of 10^30 tokens once", "usage", whole=True),
    Row("SIGKILL of an engine", signals=((0.0, signal.SIGKILL),), spacing=0.02),
    Row(
        *("SIGSTOP of an engine, 20 s", "none"),
        signals=((0.0, signal.SIGSTOP), (20.0, signal.SIGCONT)),
        patience=15.0,
        spacing=0.02,
    ),
    Row("SIGTERM of the router", signals=((0.0, signal.SIGTERM),), to_router=True, at_once=20, tokens=25, spacing=0.02),
    Row("SIGKILL of the router", signals=((0.0, signal.SIGKILL),), to_router=True, at_once=20, tokens=25, spacing=0.02),
    Row("1,000 clients, faults that change", requests=1000, at_once=20, patience=20.0, goes=10, changes=True),
    Row("1,000 clients that go", requests=1000, at_once=50, tokens=400, spacing=0.025, goes=1),
)
