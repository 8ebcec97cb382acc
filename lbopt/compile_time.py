"""Seconds that went into kernels before they ran: compiled, read from disk, or waited for while another compiles them.

`clock` leaves these seconds out: it is what limits and results count by. `compile_progress` says what is compiled.
This module imports neither Numba nor a kernel, so that reading it costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Account:
    total, depth = 0.0, 0
    begun: float | None = None


def seconds() -> float:
    """Return the seconds so far in this process."""
    begun = _Account.begun
    return _Account.total + (0.0 if begun is None else time.perf_counter() - begun)


def clock() -> float:
    """Return seconds of `time.perf_counter` that stand still while a kernel is prepared."""
    return time.perf_counter() - seconds()


@contextmanager
def preparing() -> Iterator[None]:
    """Count the time within; a kernel that is prepared within another is counted once. The compiler's lock is held."""
    if _Account.depth == 0:
        _Account.begun = time.perf_counter()
    _Account.depth += 1
    try:
        yield
    finally:
        _Account.depth -= 1
        if _Account.depth == 0 and _Account.begun is not None:
            took, _Account.begun = time.perf_counter() - _Account.begun, None
            _Account.total += took
