"""Runs a native solve in a thread of its own, so that Ctrl-C reaches Python while the solver works."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_SECONDS = 0.05


def run_interruptible(work: Callable[[], object], stop: Callable[[], object]) -> bool:
    """Run `work` to its end; on Ctrl-C call `stop`, again and again, until it ends. Return whether Ctrl-C came.

    An event is waited for and not the thread: in Python up to 3.12 an interrupted `Thread.join` marks a thread as
    finished that still runs.
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

    interrupted = False
    threading.Thread(target=run, daemon=True).start()
    while not finished.is_set():
        try:
            if interrupted:
                stop()  # the first call may come before the search listens
            finished.wait(_LOOK_SECONDS)
        except KeyboardInterrupt:
            interrupted = True
    if errors:
        raise errors[0]
    return interrupted
