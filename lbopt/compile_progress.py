"""What a person sees while kernels compile: "compiling kernel 57 of 212" with a bar, in a terminal or a notebook.

How many there will be is read from the code: a function names the kernels that it calls, those name theirs, and the
outermost is compiled last. The log `lbopt.kernels` says it once at level INFO and, where no bar can be drawn, every
five seconds at level WARNING, which Python shows to a script that sets up no log. Who sets the level of that logger
above WARNING sees nothing. Worker processes say nothing.
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

_LOG = logging.getLogger("lbopt.kernels")

#: CPU seconds to compile what a call mostly needs of each folder of kernels, with what it needs of other folders:
#: `python -m tests.benchmarks.compiling`.
ABOUT = {
    "simulation": 13,
    "prefill": 5,
    "forecast": 5,
    "routing": 6,
    "sampling": 6,
    "assignment": 9,
    "locality": 5,
    "partition": 30,
    "search": 25,
    "conditions": 12,
    "leximax": 12,
    "windows": 18,
    "known_ends": 22,
    "hindsight": 12,
}

#: Seconds before a bar appears, between two of its pictures, and between two lines of a log.
_PATIENCE, _EVERY, _EVERY_LINE = 0.5, 0.1, 5.0
_WIDTH = 30

#: Shows that of `m` kernels the `n`-th is compiled, 1 <= n <= m, and after the last one n = m + 1.
Show = Callable[[int, int], None]


class _Shown:
    by: Show | None = None
    announced = False


def show_by(show: Show | None) -> None:
    """Have `show` called instead of drawing a bar on standard error; None draws it."""
    _Shown.by = show


def said() -> None:
    """Announce nothing any more in a log: the caller says it in its own way."""
    _Shown.announced = True


class Compiling:
    """Follows the compiler through one outermost kernel.

    Parameters
    ----------
    outermost
        The Python function of the kernel.
    done
        Functions that this process has compiled already; those that it compiles now are added.
    """

    def __init__(self, outermost: FunctionType, done: set[FunctionType]) -> None:
        self._ahead, self._done = reached(outermost) - done, done
        self._total, self._count = len(self._ahead), 0
        self._begun = self._last = time.monotonic()
        self._drawn = False
        _announce(outermost.__module__ or "")

    def compiled(self, function: FunctionType) -> None:
        """Count a function, and show how far the compiler is."""
        if function not in self._ahead:
            return
        self._ahead.remove(function)
        self._done.add(function)
        self._count += 1
        now = time.monotonic()
        bar = _Shown.by or (_draw if _has_a_bar() else None)
        if self._count < self._total and now - self._begun >= _PATIENCE:
            if bar is not None and now - self._last >= _EVERY:
                self._last, self._drawn = now, True
                bar(self._count + 1, self._total)
            elif bar is None and now - self._last >= _EVERY_LINE:
                self._last = now
                if multiprocessing.parent_process() is None:
                    _LOG.warning("compiling kernel %d of %d", self._count + 1, self._total)

    def over(self) -> None:
        """Take the bar away."""
        if self._drawn:
            (_Shown.by or _draw)(self._total + 1, self._total)


def reached(outermost: FunctionType) -> set[FunctionType]:
    """Return the functions of all kernels that a kernel calls, directly or not, and its own."""
    found, ahead = {outermost}, [outermost]
    while ahead:
        function = ahead.pop()
        code, cells = function.__code__, function.__closure__ or ()
        named: list[Any] = [function.__globals__.get(name) for name in code.co_names]
        named += [cell.cell_contents for cell in cells]
        new = {called for one in named if isinstance(called := getattr(one, "py_func", None), FunctionType)} - found
        found |= new
        ahead += new
    return found


def _announce(module: str) -> None:
    """Say once in a process, in a log, that a kernel of `module` is compiled, and about how long it takes."""
    about = ABOUT.get(module.removeprefix("lbopt.kernels.").partition(".")[0])
    if about is not None and not _Shown.announced:
        _Shown.announced = True
        _LOG.info("compiling kernels once (about %d s)", about)


def _has_a_bar() -> bool:
    """Whether a line on standard error can be drawn over: in a terminal, or in a notebook."""
    if multiprocessing.parent_process() is not None or _LOG.getEffectiveLevel() > logging.WARNING:
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _draw(n: int, m: int) -> None:
    """Draw the bar over the one before."""
    text = f"compiling kernel {n} of {m} "
    full = _WIDTH * (n - 1) // m
    line = f"{text}[{'#' * full}{'.' * (_WIDTH - full)}]"
    sys.stderr.write(f"\r{line}" if n <= m else f"\r{' ' * len(line)}\r")
    sys.stderr.flush()
