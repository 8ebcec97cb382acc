"""What the writing and the check of a proof may take: work, which is the same on every machine, and time.

A caller limits them by `allowing`; writers and checkers call `spend` in their loops. Without a limit, as in
`verify` and `Result.certificate`, `spend` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class SpentError(Exception):
    """The work or the time that a proof may take is over; whether the bound holds stays open."""


@dataclass(slots=True)
class _Allowance:
    work: int
    stopped: Callable[[], object]


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowing(work: int, stopped: Callable[[], object]) -> Iterator[None]:
    """Limit what `spend` accepts within this block.

    Parameters
    ----------
    work
        Units, about a microsecond each.
    stopped
        Says, by anything true, that the time is over or that the call is cancelled.
    """
    token = _ALLOWANCE.set(_Allowance(work, stopped))
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def spend(work: int) -> None:
    """Take so many units of work from what is allowed.

    Raises
    ------
    SpentError
        Where nothing is left of the work or of the time.
    """
    allowance = _ALLOWANCE.get()
    if allowance is None:
        return
    allowance.work -= work
    if allowance.work < 0 or allowance.stopped():
        raise SpentError
