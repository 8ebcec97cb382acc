"""Ctrl-C where it must not act at once, must not be swallowed, or must not reach the processes of an engine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, so that what is being written gets written."""
    before = _handler()
    if before is None:
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    try:  # pressed in between, it finds the handler from before put back
        signal.signal(signal.SIGINT, lambda number, frame: pressed.append((number, frame)))
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            before(*pressed[0])


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Let Ctrl-C act, and note it in the list: the block may swallow it and end as if nothing had happened."""
    before = _handler()
    pressed: list[int] = []
    if before is None:
        yield pressed
        return
    act = before

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        act(number, frame)

    try:
        signal.signal(signal.SIGINT, note)
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that start in the block not hear Ctrl-C of the terminal; here it acts when the block has ended.

    An engine ends its processes itself. While they start, they would answer Ctrl-C with a traceback, and an engine
    whose start is broken off leaves some of them running.
    """
    with held_interrupts():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        resource_tracker.ensure_running()  # started within the block, it would take the mask off again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handler() -> _Handler | None:
    """Return Python's present handler of Ctrl-C, or None: outside the main thread it never comes."""
    if threading.current_thread() is not threading.main_thread():
        return None
    present = signal.getsignal(signal.SIGINT)
    return present if callable(present) else None
