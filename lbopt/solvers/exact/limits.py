"""When a search has to stop: a clock, and work, which every machine feels alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

#: Says how many seconds are left; None is without limit.
Clock = Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one search.

    Parameters
    ----------
    remaining
        Says how many seconds are left; None is without limit.
    effort
        Units of work, about a microsecond each; None is without limit.
    """

    remaining: Clock
    effort: int | None = None

    def reached(self, work: int) -> str | None:
        """Return "time" or "effort" where that limit is reached, else None."""
        left = self.remaining()
        if left is not None and left <= 0:
            return "time"
        return "effort" if self.effort is not None and work >= self.effort else None


def without(clock: Clock, seconds: float) -> Clock:
    """Return a clock that does not count the last `seconds`, which kernels took to load."""

    def left() -> float | None:
        remains = clock()
        return None if remains is None else remains + seconds

    return left


def countdown(seconds: float | None) -> Clock:
    """Return a clock that says how many seconds are left, counted from the first time it is asked.

    The search asks it when its kernels are loaded: compiling them takes most of a minute in the first process that ever
    needs them, and that is no decision's fault.
    """
    asked_first: float | None = None

    def left() -> float | None:
        nonlocal asked_first
        if seconds is None:
            return None
        if asked_first is None:
            asked_first = time.perf_counter()
        return asked_first + seconds - time.perf_counter()

    return left
