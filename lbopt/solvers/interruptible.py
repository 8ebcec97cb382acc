"""Runs a native solve in a thread of its own, so that Ctrl-C reaches Python while the solver works."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

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
