"""What goes on beside the work of an event loop: looks again and again, and the end by Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


async def repeat(look: Callable[[], Awaitable[None]], seconds: float, what: str) -> None:
    """Look again and again, so many seconds apart, whatever goes wrong in between."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await look()
        except Exception:
            _log.exception("a look at the %s failed", what)


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
