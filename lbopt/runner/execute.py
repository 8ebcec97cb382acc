"""Ctrl-C where it must not act at once, must not be swallowed, or must not reach the processes of an engine.

Runs one task in this process and says how it ended. An exception of a task is its failure; Ctrl-C is not.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.runner.row import Failure, Outcome
from lbopt.runner.task import Task, canonical_json

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def noted_interrupts(*, act: bool = True) -> Iterator[list[tuple[int, FrameType | None]]]:
    """Note Ctrl-C in the list: the block may swallow it and end as if nothing had happened.

    It acts at once, or, unless `act`, when the block has ended, so that what is being written gets written.
    """
    before = _handler()
    pressed: list[tuple[int, FrameType | None]] = []
    if before is None:
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append((number, frame))
        if act:
            before(number, frame)

    try:  # pressed in between, it finds the handler from before put back
        signal.signal(signal.SIGINT, note)
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and not act:
            before(*pressed[0])


@contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that start in the block not hear Ctrl-C of the terminal; here it acts when the block has ended.

    An engine ends its processes itself. While they start, they would answer Ctrl-C with a traceback, and an engine
    whose start is broken off leaves some of them running.
    """
    with noted_interrupts(act=False):
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


#: Longest answer in characters; SQLite holds texts of up to a billion bytes.
LONGEST_ANSWER = 2**28


def execute(task: Task) -> Outcome:
    """Call the function of the task and return its answer or its failure.

    A function that catches Ctrl-C and returns what it has so far, or fails over it, has not ended: KeyboardInterrupt
    is raised all the same, and there is no outcome.
    """
    with noted_interrupts() as pressed:
        outcome = _run(task)
    if pressed:
        raise KeyboardInterrupt
    return outcome


def _run(task: Task) -> Outcome:
    begin = compile_time.clock()
    try:
        function = resolve(task.function)
        arguments = task.arguments()
        begin = compile_time.clock()  # importing the function's module is not its work
        result = function(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit too: a task must not end the run
        return _failed(task, "raised", error, compile_time.clock() - begin)
    seconds = compile_time.clock() - begin
    try:
        return Outcome(key=task.key, answer=_text(result), seconds=seconds)
    except InputError as error:
        return _failed(task, "unstorable", error, seconds)


def resolve(path: str) -> Callable[..., Any]:
    """Return the function at "package.module:name"; an InputError says what of it does not exist."""
    home, _, name = path.partition(":")
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{home}.".startswith(f"{error.name}."):
            raise  # the module exists, but imports one that does not
        raise InputError(f"function '{path}' cannot be run: there is no module '{error.name}' on sys.path") from None
    function = getattr(module, name, None)
    if not callable(function):
        what = "is not a function" if hasattr(module, name) else "does not exist"
        raise InputError(f"function '{path}' cannot be run: '{name}' {what} in module '{home}'")
    return function  # type: ignore[no-any-return]


def _text(result: object) -> str:
    text = canonical_json(result, "the result")
    if len(text) > LONGEST_ANSWER:
        raise InputError(f"the result has {len(text)} characters as JSON; a store takes up to {LONGEST_ANSWER}")
    return text


def _failed(task: Task, kind: str, error: BaseException, seconds: float) -> Outcome:
    inner = error.__traceback__.tb_next if error.__traceback__ else None  # without this file's own frame
    failure = Failure(
        kind=kind,
        exception=type(error).__name__,
        message=_said(error),
        traceback="".join(traceback.format_exception(type(error), error, inner)),
    )
    return Outcome(key=task.key, failure=failure, seconds=seconds)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be shown"
