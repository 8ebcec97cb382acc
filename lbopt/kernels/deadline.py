"""The clock as compiled code reads it: whether a deadline has passed.

A search works in slices, and Python looks at the clock between them. What cannot be cut into slices, a table or a list
of patterns, looks by itself, about every tenth of a millisecond; a look takes some 40 ns. A deadline only ends a
search: nothing that it cuts short is taken up again, so no answer without a limit depends on the clock.

Numba has no clock, so the one of the C library is called: ``clock_gettime``, which Linux and macOS have. Elsewhere
(Windows) no deadline ever passes here, and only the looks between slices count.
"""

import ctypes
import time
from typing import Any

import numba
import numpy as np
from numba.core import types, typing

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel

#: A deadline that never passes.
NEVER = 0

#: Work that is never used up.
ENDLESS = 0

#: Whether the C library of this process has the clock.
HAS_CLOCK = hasattr(time, "CLOCK_MONOTONIC") and ctypes.sizeof(ctypes.c_long) == 8
_WHICH = np.int32(time.CLOCK_MONOTONIC if HAS_CLOCK else 0)
_SECOND = 1_000_000_000

_TYPES: Any = types
_SETTINGS: Any = numba.config
_signature: Any = typing.signature  # type: ignore[attr-defined]
_clock_gettime: Any = _TYPES.ExternalFunction(
    "clock_gettime", _signature(_TYPES.int32, _TYPES.int32, _TYPES.CPointer(_TYPES.int64))
)


def now() -> int:
    """Return the time in nanoseconds of the clock that deadlines are given in, which is the one read below."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) if HAS_CLOCK else time.monotonic_ns()


if _SETTINGS.DISABLE_JIT:

    def passed(deadline: int) -> bool:
        """Return whether `deadline` (nanoseconds of `now`, `NEVER` for none) has passed."""
        return deadline != NEVER and now() >= deadline

elif not HAS_CLOCK:

    @kernel
    def passed(deadline: int) -> bool:
        """Return False: compiled code has no clock on this system."""
        return False

else:

    @kernel
    def passed(deadline: int) -> bool:
        """Return whether `deadline` (nanoseconds of `now`, `NEVER` for none) has passed."""
        if deadline == NEVER:
            return False
        seconds = np.empty(2, dtype=np.int64)
        _clock_gettime(_WHICH, seconds.ctypes)
        return seconds[0] * _SECOND + seconds[1] >= deadline


@kernel
def out_of_time(limits: Record) -> bool:
    """Return whether the deadline of a search has passed, and note it: from then on every look says so.

    Parameters
    ----------
    limits
        A record with the fields ``deadline`` (nanoseconds of `now`, `NEVER` for none) and ``expired`` (0 or 1), which
        is set.
    """
    if limits.expired == 0 and passed(limits.deadline):
        limits.expired = 1
    return limits.expired == 1


@kernel
def used_up(limits: Record) -> bool:
    """Return whether a search has to end: its work has reached the most that it may do, or its deadline has passed.

    Parameters
    ----------
    limits
        As in `out_of_time`, with the fields ``work`` and ``most`` (units of work; `ENDLESS` for no limit).
    """
    return (limits.most != ENDLESS and limits.work >= limits.most) or out_of_time(limits)
