"""The clock of an exact search, and what ends it before its time: compiling does not count, and Ctrl-C is heard.

Compiled code looks at the deadline in its record of state, about every tenth of a millisecond. Whoever wants the search
to end brings that deadline forward from another thread; Python's part looks at `Halt.is_asked` between two kernels.
"""

from __future__ import annotations

from lbopt.kernels import compile_time
from lbopt.kernels.arrays import Record
from lbopt.kernels.deadline import now

#: A deadline that has passed, whatever the time is: 0 would be none.
_PASSED = 1


def clock() -> float:
    """Return seconds of a clock that stands still while kernels are compiled or read from disk."""
    return now() / 1e9 - compile_time.seconds()


class Halt:
    """Ends a search from another thread: `ask` may be called at any time, and again until the search has ended."""

    def __init__(self) -> None:
        self._asked = False
        self._watched: list[Record] = []

    @property
    def is_asked(self) -> bool:
        """Return whether the search has to end."""
        return self._asked

    def watch(self, state: Record) -> None:
        """Bring the deadline of this record forward once `ask` is called, or now if it was."""
        self._watched.append(state)
        if self._asked:
            state.deadline = _PASSED

    def ask(self) -> None:
        """End the search."""
        self._asked = True
        for state in self._watched:
            state.deadline = _PASSED
