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
    at
        s after it was read when it begins.
    lasts
        s; None = for good.
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
    at: float = 0.0
    lasts: float | None = None
    factor: float = 2.0
    after: int = 1
    count: int = 1
    mode: str = "error"

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

    def built(
        worker: int | None = None,
        prefiller: int | None = None,
        at: str = "0s",
        lasts: str | None = None,
        factor: float = 2.0,
        after: int = 1,
        count: int = 1,
        mode: str = "error",
    ) -> Fault:
        name = f"fault '{kind}'"
        end = None if lasts is None else duration(f"{name}: for", lasts)
        return Fault(kind, worker, prefiller, duration(f"{name}: at", at), end, factor, after, count, mode)

    # `for` is what one would say, and no name in Python
    words = ",".join("lasts=" + part[4:] if part.startswith("for=") else part for part in rest.split(","))
    fault = built(**options_of("fault", kind, words, built))
    if (fault.worker is None) == (fault.prefiller is None):
        raise InputError(f"fault '{text.strip()}' meets nothing; expected worker=NUMBER or prefiller=NUMBER")
    if fault.kind == "slow" and not 0 < fault.factor < math.inf:
        raise InputError(
            f"fault 'slow': factor is {fault.factor:g}; expected a number above 0; `freeze` stops a worker"
        )
    if fault.after < 0 or fault.count < 1:
        raise InputError(f"fault '{kind}': after is {fault.after} and count {fault.count}; expected 0 and 1 at least")
    if fault.mode not in MODES:
        raise InputError(f"fault '{kind}': mode is '{fault.mode}'; expected {', '.join(MODES)}")
    return fault


def make_faults(lines: Iterable[str]) -> list[Fault]:
    """Read one fault a line; empty lines and what follows ``#`` are left out."""
    texts: list[Any] = [line.partition("#")[0].strip() for line in lines]
    return [make_fault(text) for text in texts if text]
