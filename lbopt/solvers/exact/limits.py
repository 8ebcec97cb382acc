"""When a search has to stop: a clock, and work, which every machine feels alike."""

from __future__ import annotations

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
