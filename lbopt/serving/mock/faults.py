"""What goes wrong on demand: ``kind:worker=3,at=10s,for=5s``, one fault a line in a file or in the body of a request.

crash
    The process of the endpoint dies: connections are reset, new ones are refused, and its requests are lost. With
    `for` it comes back empty.
freeze
    The process stands still, as by SIGSTOP: it takes connections and answers nothing, and its barrier group waits.
slow
    The worker needs `factor` times as long for its own part of every step.
reset, half-close, truncate, stall
    Of the next `count` streams, each after `after` events: the connection is reset; the server closes its side and
    still reads; the body ends properly without the rest of its events; nothing more is sent, and the connection stays.
busy
    New requests are answered with status 503.
lost-metrics
    `/metrics` answers with status 500 (`mode=error`), never (`mode=hang`), or with something else (`mode=garbage`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.spec import duration, options_of, unknown

#: Faults that last, and those that meet the next streams.
LASTING = ("crash", "freeze", "slow", "busy", "lost-metrics")
ON_STREAMS = ("reset", "half-close", "truncate", "stall")
MODES = ("error", "hang", "garbage")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Parameters
    ----------
    kind
        Out of `LASTING` and `ON_STREAMS`.
    worker, prefiller
        Which one it meets; one of them is None.
    at, lasts
        Durations, after it was read until it begins, and until it ends; None = for good.
    factor
        Of `slow`.
    after, count
        Events of a stream before it, and streams that it meets.
    mode
        Of `lost-metrics`.
    """

    kind: str
    worker: int | None = None
    prefiller: int | None = None
    at: str = "0s"
    lasts: str | None = None
    factor: float = 2.0
    after: int = 1
    count: int = 1
    mode: str = "error"

    def __post_init__(self) -> None:
        _ = self.seconds_before, self.seconds
        if (self.worker is None) == (self.prefiller is None):
            raise InputError(f"fault '{self.kind}' meets nothing; expected worker=NUMBER or prefiller=NUMBER")
        if self.kind == "slow" and not 0 < self.factor < math.inf:
            raise InputError(
                f"fault 'slow': factor is {self.factor:g}; expected a number above 0; `freeze` stops a worker"
            )
        if self.after < 0 or self.count < 1:
            given = f"after is {self.after} and count {self.count}"
            raise InputError(f"fault '{self.kind}': {given}; expected 0 and 1 at least")
        if self.mode not in MODES:
            raise InputError(f"fault '{self.kind}': mode is '{self.mode}'; expected {', '.join(MODES)}")

    @property
    def seconds_before(self) -> float:
        """Until it begins."""
        return duration(f"fault '{self.kind}': at", self.at)

    @property
    def seconds(self) -> float | None:
        """For which it lasts; None = for good."""
        return None if self.lasts is None else duration(f"fault '{self.kind}': for", self.lasts)

    def __str__(self) -> str:
        whom = f"worker={self.worker}" if self.prefiller is None else f"prefiller={self.prefiller}"
        return f"{self.kind}:{whom}"


def make_fault(text: str) -> Fault:
    """Read one fault.

    Raises
    ------
    InputError
        Naming what is unknown or out of range.
    """
    kind, _, rest = text.strip().partition(":")
    if kind not in LASTING + ON_STREAMS:
        raise unknown("fault", kind, LASTING + ON_STREAMS)
    # `for` is what one would say, and no name in Python
    words = ",".join("lasts=" + part[4:] if part.startswith("for=") else part for part in rest.split(","))
    return Fault(kind, **options_of("fault", kind, words, Fault))


def make_faults(lines: Iterable[str]) -> list[Fault]:
    """Read one fault a line; empty lines and what follows ``#`` are left out."""
    texts: list[Any] = [line.partition("#")[0].strip() for line in lines]
    return [make_fault(text) for text in texts if text]
