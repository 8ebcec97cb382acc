"""The child's side of engine "isolated": reads tasks, one a line, and writes outcomes, one a line.

Standard input and output are the two ends of the talk, so they are moved out of the way before any task runs: what a
task or a native library prints goes where standard error goes, and it reads nothing. The parent holds standard input
open as long as it lives; when that closes in the middle of a task, no process waits for the outcome, and the child ends
itself with everything it started.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from queue import SimpleQueue
from typing import BinaryIO

from lbopt.runner.execute import execute
from lbopt.runner.task import Task


def main() -> None:
    """Run tasks until the parent has no more."""
    requests, answers = _private_channels()
    faulthandler.enable()  # a crash leaves its traceback on standard error
    inbox = _Inbox()
    threading.Thread(target=inbox.listen, args=(requests,), daemon=True).start()
    while (line := inbox.next()) is not None:
        outcome = execute(Task.from_text(line.decode("ascii")))
        inbox.at_work = False  # before the answer goes out: the parent may hang up at once
        answers.write(outcome.to_json().encode("ascii") + b"\n")
        answers.flush()


class _Inbox:
    """The tasks that have come, and whether one is being run."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.at_work = False

    def listen(self, requests: BinaryIO) -> None:
        """Take in lines until the parent hangs up or dies."""
        for line in requests:
            self.at_work = True
            self._lines.put(line)
        if self.at_work:
            os.killpg(0, signal.SIGKILL)  # the child leads a group of its own; its children are in it
        self._lines.put(None)

    def next(self) -> bytes | None:
        """Wait for a task; None says that none will come."""
        return self._lines.get()


def _private_channels() -> tuple[BinaryIO, BinaryIO]:
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers
