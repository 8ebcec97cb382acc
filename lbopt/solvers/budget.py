"""How long a search may run: a limit in seconds, and a limit in units of work, which is the same on every machine.

Two clocks read a limit in seconds. `Budget.remaining` counts from the call of `solve`. `Budget.after_loading` is for
lbopt's own searches: it counts from its first reading, which comes after their kernels are loaded. No clock here counts
the time in which kernels are compiled or loaded (`lbopt.kernels.compile_time`): in the first process that ever needs
them that takes most of a minute, and neither a limit nor the seconds of a result have to pay for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from lbopt.kernels import compile_time

#: Returns the seconds that are left; None is without limit.
Clock = Callable[[], float | None]


class Budget:
    """What one call of `solve` may spend.

    Parameters
    ----------
    time_limit
        Seconds, above 0; None for no limit.
    seed
        Seed of the solvers that take one.
    """

    def __init__(self, time_limit: float | None, seed: int = 0) -> None:
        self.time_limit, self.seed = time_limit, seed
        self.begun = _now()
        self.after_loading: Clock = countdown(time_limit)

    @property
    def seconds(self) -> float:
        """Seconds since the call, without those in which kernels were compiled or loaded."""
        return _now() - self.begun

    def remaining(self) -> float | None:
        """Return the seconds that are left of the limit, zero or less where none are; None without a limit."""
        return None if self.time_limit is None else self.time_limit - self.seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one search.

    Parameters
    ----------
    remaining
        Returns the seconds that are left; None is without limit.
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


def countdown(seconds: float | None) -> Clock:
    """Return a clock that starts when it is first read."""
    first_read: float | None = None

    def left() -> float | None:
        nonlocal first_read
        if seconds is None:
            return None
        if first_read is None:
            first_read = _now()
        return first_read + seconds - _now()

    return left


def _now() -> float:
    return time.perf_counter() - compile_time.seconds()
