"""What a solver of integer programs gets and returns: `minimise` of its module takes a `Task` and gives a `RawAnswer`.

It neither rounds, nor checks, nor decides what is optimal: `lbopt.solvers.program_engine` and `solve` do that for all.

Here is also how a solver's floats become exact integers: values go to the nearest, bounds up with a stated tolerance.

A native solve runs in a thread of its own, so that Ctrl-C reaches Python while the solver works.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from math import ceil, isfinite
from types import FrameType
from typing import Protocol, cast

import numpy as np

from lbopt import compile_time
from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model import check_assignment
from lbopt.model.formulation import LinearProgram, Program
from lbopt.model.integers import IntArray
from lbopt.solvers.registry import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of a solver.

    The limit counts from when the task was made, so that writing the program down for a solver is part of it.

    Parameters
    ----------
    program
        The integer program.
    hint
        Values of all columns to start from; None for none.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    from_below
        Raise the bound from the relaxation, since a good solution is known: CP-SAT's tree search by lower bounds.
    begun
        When the task was made, by `lbopt.compile_time.clock`.
    """

    program: LinearProgram
    hint: Sequence[int] | None = None
    time_limit: float | None = None
    seed: int = 0
    from_below: bool = False
    begun: float = field(default_factory=compile_time.clock, compare=False)

    def remaining(self) -> float | None:
        """Return the seconds that are left, zero or less where none are; None without a limit."""
        return None if self.time_limit is None else float(self.time_limit) - (compile_time.clock() - self.begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """What a solver returns, unchecked.

    Parameters
    ----------
    values
        Values of the program's columns; None where none were found.
    bound
        Claimed lower bound on ``cost . x``, without the offset, in the units of the program; None for none.
    stop
        "done", "time", "interrupted" or "failed"; "infeasible" where the solver says that there is no solution.
    native_status
        The solver's own word for how it ended.
    """

    values: Sequence[float] | None
    bound: float | None
    stop: str
    native_status: str


#: The answer of a backend that had no time left when the program was written down.
NOT_STARTED = RawAnswer(values=None, bound=None, stop="time", native_status="not started")


class Backend(Protocol):
    """A module with one function."""

    def minimise(self, task: Task) -> RawAnswer:
        """Minimise the program of `task`."""
        ...


def load(name: str) -> Backend:
    """Import the backend's module and return it."""
    return cast(Backend, import_module(require(name).module))


#: A bound may be too large by 1e-6 (the solvers' feasibility tolerance) or one part in 1e9 (their arithmetic).
ABSOLUTE_TOLERANCE = 1e-6
RELATIVE_TOLERANCE = 1e-9


def rounded_up(bound: float | None) -> int | None:
    """Return the least integer that the bound leaves possible; None for no bound or an infinite one.

    The relative part is 1e-9, not 1e-6: with the latter no program whose cost exceeds 5e5 could ever be closed. Both
    together stay below 1/2 in the whole range in which a solver's bounds are used at all.
    """
    if bound is None or isinstance(bound, int):
        return bound
    if not isfinite(bound):
        return None
    return ceil(bound - max(ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE * abs(bound)))


def placement(program: Program, values: Sequence[float] | None) -> IntArray | None:
    """Return the assignment of a solver's values, rounded and checked, or None where they give no feasible one."""
    if values is None or not all(map(isfinite, values)):
        return None
    try:
        workers = program.decode([round(value) for value in values])
        return check_assignment(program.problem, np.array(workers, dtype=np.int64))
    except (InputError, InfeasibleDecisionError):
        return None


_LOOK_SECONDS = 0.05

#: So many times Ctrl-C is pressed before a solver that does not listen is left to itself.
_PATIENCE = 3


def run_interruptible(work: Callable[[], object], stop: Callable[[], object]) -> bool:
    """Run `work` to its end; on Ctrl-C call `stop`, again and again, until it ends. Return whether Ctrl-C came.

    Ctrl-C is noted instead of raised while the solver works: an exception could leave this function at any line, with
    the native thread still running, and the interpreter would then abort when it ends.
    """
    finished = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=run, daemon=True)
    with _noted_interrupt() as interrupted:
        thread.start()
        while not finished.wait(_LOOK_SECONDS):
            if interrupted.is_set():
                stop()  # the first call may come before the search listens
        thread.join()
    if errors:
        raise errors[0]
    return interrupted.is_set()


@contextmanager
def _noted_interrupt() -> Iterator[threading.Event]:
    """Note Ctrl-C in an event; outside the main thread none ever comes."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    presses = 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        interrupted.set()
        if presses >= _PATIENCE:  # the solver is deaf: a user who presses on wants out, at any price
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
