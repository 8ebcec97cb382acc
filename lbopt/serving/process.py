"""What a process does beside its work: waits for a moment, looks again and again, ends by Ctrl-C, misses packages."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from lbopt.exceptions import BackendUnavailableError

_log = logging.getLogger(__name__)


#: Orders of `quiet`: a router decides before engines begin their next step.
ROUTER_ORDER, ENGINE_ORDER = 0, 1


def is_virtual(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether time jumps when nothing is ready, as on `tools/virtual_clock.py`; it says when that is."""
    return hasattr(loop, "call_when_quiet")


async def quiet(order: int = ROUTER_ORDER) -> None:
    """Wait until nothing is ready at this virtual time; return at once on a loop with a wall clock."""
    loop: Any = asyncio.get_running_loop()
    if is_virtual(loop):
        await loop.quiet(order)


def call_when_settled(callback: Callable[[], None], seconds: float) -> None:
    """Call once all of this moment is known: at quiet on a virtual clock, `seconds` later on a wall clock."""
    loop: Any = asyncio.get_running_loop()
    if is_virtual(loop):
        loop.call_when_quiet(callback)
    else:
        loop.call_later(seconds, callback)


async def sleep_until(when: float) -> None:
    """Sleep until the loop's clock shows `when`, exactly on a virtual clock; others have their turn in any case."""
    loop = asyncio.get_running_loop()
    if when <= loop.time():
        await asyncio.sleep(0)
        return
    future = loop.create_future()
    timer = loop.call_at(when, _wake, future)
    try:
        await future
    finally:
        timer.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
    """Call `stop` at Ctrl-C or SIGTERM while the block runs; a second one ends the process as usual."""
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


#: Modules that have to be there, and the package that brings each; uvloop is used where it exists.
_NEEDED = {"aiohttp": "aiohttp", "msgspec": "msgspec", "prometheus_client": "prometheus-client"}


def require_serving(what: str) -> None:
    """Raise if a package of the extra is absent.

    Parameters
    ----------
    what
        Who needs it, such as "lbopt mock".

    Raises
    ------
    BackendUnavailableError
        With the command that installs it.
    """
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise BackendUnavailableError(
            f"`{what}` needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} absent: "
            'pip install "lbopt[serve]"'
        )
