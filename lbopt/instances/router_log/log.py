"""`RouterLog`: what a router's log says of each attempt to serve a request, checked, in seconds and whole tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError

#: How an attempt ended. Attempts that were finished alone say how long a token takes; the others still held memory.
FINISHED, CANCELLED, TIMED_OUT, PREEMPTED, RETRIED, RUNNING = ENDINGS = (
    "finished",
    "cancelled",
    "timed out",
    "pre-empted",
    "retried",
    "still running",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """Which column of the file a quantity was read from, and how.

    Parameters
    ----------
    quantity
        "id", "arrival", "start", "finish", "prompt", "output", "worker", "status", ...
    column
        Its name in the file; for a quantity made of several, these with a sign between, ``arrival + ttft``.
    unit
        "s", "ms", "us", "ns", "date-time", "tokens", "" and the like.
    given
        Whether an option named the column; otherwise its name and content were recognised.
    """

    quantity: str
    column: str
    unit: str = ""
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RouterLog:
    """Attempts to serve requests, in the order in which their decoding started.

    Parameters
    ----------
    name
        What to call the log.
    ids
        (N,) texts. Confidential: no page shows one.
    arrival, start, finish
        float64 (N,), seconds since the first arrival: request known, decoding started, last token out. `finish` of an
        attempt that still ran is NaN.
    prompt
        int64 (N,), tokens in memory when decoding started.
    output
        int64 (N,), decode steps between start and finish, >= 1; of an attempt that still ran or did not finish, as many
        as are known, possibly 0.
    worker
        int64 (N,), 0 .. G - 1.
    ending
        (N,), of `ENDINGS`.
    workers
        (G,), the workers' names in the file.
    columns
        How the file was read.
    left_out
        Why rows are not here, and how many: {"doubled": 3}.
    notes
        Sentences for the reader of a report.
    origin
        Date-time of second 0, ISO 8601, where the file has one.
    """

    name: str
    ids: NDArray[Any]
    arrival: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    worker: NDArray[np.int64]
    ending: NDArray[Any]
    workers: tuple[str, ...]
    columns: tuple[ColumnReading, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str | None = None

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name).shape for name in _ARRAYS}
        if len(set(sizes.values())) > 1 or len(next(iter(sizes.values()))) != 1:
            raise InputError(f"the columns of log '{self.name}' differ in length: {sizes}")
        if self.ids.size == 0:
            raise InputError(f"log '{self.name}' holds no request that started to decode")
        if self.worker.min() < 0 or self.worker.max() >= len(self.workers):
            raise InputError(f"log '{self.name}' names workers outside 0..{len(self.workers) - 1}")
        if (np.diff(self.start) < 0).any():
            raise InputError(f"log '{self.name}' is not in the order of start")

    def __repr__(self) -> str:
        return f"<RouterLog {self.name}: {len(self):,} attempts, {len(self.workers)} workers, {self.span:,.0f} s>"

    def __len__(self) -> int:
        return int(self.ids.size)

    @property
    def is_finished(self) -> NDArray[np.bool_]:
        """(N,), whether the attempt ran to its end."""
        return np.asarray(self.ending == FINISHED)

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last start or finish."""
        return float(np.nanmax(np.concatenate([self.start, self.finish])))


_ARRAYS = ("ids", "arrival", "start", "finish", "prompt", "output", "worker", "ending")
