"""Seconds that went into kernels before they ran: compiled, read from disk, or waited for while another compiles them.

A clock that leaves these seconds out reads them here, and so does who wants to be told that a kernel is compiled. This
module imports neither Numba nor a kernel, so that reading it costs nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOG = logging.getLogger(__name__)

#: CPU seconds to compile what a call mostly needs of each folder of kernels, with what it needs of other folders.
ABOUT = {
    "simulation": 20,
    "prefill": 8,
    "forecast": 5,
    "routing": 10,
    "sampling": 10,
    "assignment": 15,
    "locality": 5,
    "partition": 50,
    "search": 50,
    "conditions": 20,
    "leximax": 20,
    "windows": 30,
    "known_ends": 40,
    "hindsight": 20,
}


class _Account:
    total, begun, depth = 0.0, 0.0, 0
    announced = False


def seconds() -> float:
    """Return the seconds so far in this process."""
    running = time.perf_counter() - _Account.begun if _Account.depth else 0.0
    return _Account.total + running


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
        if _Account.depth == 0:
            _Account.total += time.perf_counter() - _Account.begun


def announce(module: str) -> None:
    """Say once in a process that a kernel of `module` is compiled, and about how long it takes."""
    about = ABOUT.get(module.removeprefix("lbopt.kernels.").partition(".")[0])
    if about is not None and not _Account.announced:
        _Account.announced = True
        _LOG.info("compiling kernels once (about %d s)", about)


def said() -> None:
    """Announce nothing any more: the caller says it in its own way."""
    _Account.announced = True
