"""Ctrl-C at the two places where it must not act at once, or must not be swallowed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append((number, frame)))
    try:
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

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _handler() -> _Handler | None:
    """Return Python's present handler of Ctrl-C, or None: outside the main thread it never comes."""
    if threading.current_thread() is not threading.main_thread():
        return None
    present = signal.getsignal(signal.SIGINT)
    return present if callable(present) else None
