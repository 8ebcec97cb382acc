"""Ctrl-C and SIGTERM inside of an event loop: a call instead of an exception, so that what was done is kept."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at Ctrl-C or SIGTERM while the block runs; a second one ends the process as usual.

    Parameters
    ----------
    stop
        What lets the block end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])

    def once() -> None:
        restore()
        stop()

    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        restore()
