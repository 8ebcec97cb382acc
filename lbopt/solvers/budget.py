"""How long a search may run: a limit in seconds, and a limit in units of work, which is the same on every machine.

Two clocks read a limit in seconds. `Budget.remaining` counts from the call of `solve`. That of `Budget.limits` is for
lbopt's own searches: it counts from its first reading, which comes after their kernels are loaded. No clock here counts
the time in which kernels are compiled or loaded (`lbopt.compile_time`): in the first process that ever needs
them that takes most of a minute, and neither a limit nor the seconds of a result have to pay for it.

A cancel that is set from outside has to end compiled code that is running, not only the next slice of it: on many
workers one slice may take seconds. Compiled code gives the interpreter free, so a thread asks meanwhile, and sets the
flag that every loop in there looks at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, Thread
from typing import Any, Protocol, TypedDict, Unpack

from lbopt import compile_time

#: A deadline that never passes, as `lbopt.kernels.deadline` has it; importing that would import Numba.
NEVER = 0

#: The clock of `lbopt.kernels.deadline`: nanoseconds of the system's monotonic clock; on macOS Python's is another one.
_clock: Callable[[], int] = (
    partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else time.monotonic_ns
)

#: Seconds that are as good as no limit.
_FOREVER = 1e9

#: Returns the seconds that are left; None is without limit.
Clock = Callable[[], float | None]


class Stops(TypedDict, total=False):
    """What ends lbopt's own search before its proof, and who hears how far it is; all parts are optional.

    Parameters
    ----------
    effort
        Units of work, about a microsecond each, after which lbopt's own search stops with what it knows: a limit that
        every machine feels alike. Small problems are exhausted whatever it is.
    target, gap
        Stop where the imbalance is at most `target`, or its distance from the bound at most `gap`; tokens.
    cancel
        A `threading.Event`: where it is set, the solve ends with what is known.
    callback
        Called with a `Progress` (objective, bound, seconds, work) where one of them has become better. What it raises
        ends the solve.
    """

    effort: int | None
    target: int | None
    gap: int | None
    cancel: Cancel | None
    callback: Callable[[Progress], object] | None


class Budget:
    """What one call of `solve` may spend.

    Parameters
    ----------
    time_limit
        Seconds, above 0; None for no limit.
    seed
        Seed of the solvers that take one.
    **stops
        As in `Stops`.
    """

    def __init__(self, time_limit: float | None, seed: int = 0, **stops: Unpack[Stops]) -> None:
        self.time_limit, self.seed = time_limit, seed
        self.limits = Limits(countdown(time_limit), seed=seed, **stops)
        self.begun = self.limits.begun

    @property
    def seconds(self) -> float:
        """Seconds since the call, without those in which kernels were compiled or loaded."""
        return compile_time.clock() - self.begun

    def remaining(self) -> float | None:
        """Return the seconds that are left of the limit, zero or less where none are; None without a limit."""
        return None if self.time_limit is None else self.time_limit - self.seconds


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is, as a callback hears it.

    Parameters
    ----------
    objective
        Imbalance of the best assignment so far, tokens; None for none.
    bound
        Lower bound that is proved so far, tokens.
    seconds
        Seconds since the call.
    work
        Units of work, about a microsecond each: what `effort` limits.
    """

    objective: int | None
    bound: int
    seconds: float
    work: int


class Cancel(Protocol):
    """Says whether a search has to stop; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Return whether the search has to stop."""
        ...


def no_limit() -> None:
    """Set no limit of time: a `Clock`."""
    return


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """When one search has to stop, and who hears how far it is.

    Parameters
    ----------
    remaining
        Returns the seconds that are left; None is without limit.
    effort
        Units of work, about a microsecond each; None is without limit.
    target, gap
        Cost, and cost less bound, that are good enough, tokens; None where only the proof is.
    cancel
        Says whether to stop at once.
    callback
        Is called with the `Progress` where the best assignment or the bound has become better.
    seed
        Of the draws of the search.
    """

    remaining: Clock = no_limit
    effort: int | None = None
    target: int | None = None
    gap: int | None = None
    cancel: Cancel | None = None
    callback: Callable[[Progress], object] | None = None
    seed: int = 0
    begun: float = field(default_factory=compile_time.clock)
    _told: list[tuple[int | None, int, int]] = field(default_factory=list)

    def reached(self, work: int, cost: int | None = None, bound: int = 0) -> str | None:
        """Return the stop reason where a limit is reached, else None; tell the callback what is new.

        Parameters
        ----------
        cost, bound
            Of the best assignment, None for none, and what is proved; tokens.
        """
        if self.callback is not None and (not self._told or self._told[-1][:2] != (cost, bound)):
            work = max([work, *(before for *_, before in self._told)])  # a solve as a whole counts none
            self._told[:] = [(cost, bound, work)]
            self.callback(Progress(cost, bound, compile_time.clock() - self.begun, work))
        if self._cancelled():
            return "cancelled"
        if cost is not None and self.good_enough(cost, bound):
            return "target"
        return self._out_of_time() or ("effort" if self.effort is not None and work >= self.effort else None)

    def leaving(self, seconds: float) -> Limits:
        """Return limits that leave so many seconds to what comes after the search."""
        remaining = self.remaining

        def left() -> float | None:
            now = remaining()
            return None if now is None else now - seconds

        return replace(self, remaining=left)

    def good_enough(self, cost: int, bound: int) -> bool:
        """Return whether this cost suffices, or is near enough to the bound; both in tokens."""
        return (self.target is not None and cost <= self.target) or (self.gap is not None and cost - bound <= self.gap)

    def stopped(self) -> str | None:
        """Return "time" or "cancelled" where that is so: all that ends a search for ties."""
        return "cancelled" if self._cancelled() else self._out_of_time()

    def _cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    def _out_of_time(self) -> str | None:
        left = self.remaining()
        return "time" if left is not None and left <= 0 else None

    def deadline(self) -> int:
        """Return when the time is over, nanoseconds of the monotonic clock; to be asked before each slice."""
        left = self.remaining()
        return NEVER if left is None else max(1, _clock() + int(min(left, _FOREVER) * 1e9))


def countdown(seconds: float | None) -> Clock:
    """Return a clock that starts when it is first read."""
    first_read: float | None = None

    def left() -> float | None:
        nonlocal first_read
        if seconds is None:
            return None
        if first_read is None:
            first_read = compile_time.clock()
        return first_read + seconds - compile_time.clock()

    return left


#: Seconds between two looks.
_EVERY = 0.02


@contextmanager
def ended_by(cancel: Cancel | None, known: Any) -> Iterator[None]:
    """Within the context, set ``known.expired`` once `cancel` is set.

    Parameters
    ----------
    cancel
        Says whether to stop; None for never.
    known
        A record of a search, as `lbopt.kernels.deadline.out_of_time` reads it.
    """
    if cancel is None:
        yield
        return
    over = Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            if cancel.is_set():
                known.expired = 1
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
