"""The parent's side of engine "isolated": one child process at a time, and the task it works on.

A child leads a session of its own. So the terminal's Ctrl-C reaches the parent alone, and a kill takes the child's
children along (CBC, say). What it prints goes to a file without a name, whose end is shown if it dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import IO

from lbopt.runner.engines import child
from lbopt.runner.outcome import Failure, Outcome
from lbopt.runner.task import Task

_BOOT = f"import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {child.__name__} import main; main()"

#: Seconds that a child has to end after it was asked to.
_GRACE_SECONDS = 1.0

_LAST_WORDS_BYTES = 8_000


class Lane:
    """Idle while `task` is None; after `begin`, `look` until it gives an outcome."""

    def __init__(self, *, kill_after: float | None, reuse: bool) -> None:
        self._kill_after = kill_after
        self._reuse = reuse
        self._process: subprocess.Popen[bytes] | None = None
        self._noise: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._received = bytearray()
        self._begun = 0.0
        self.task: Task | None = None

    def begin(self, task: Task) -> None:
        """Hand the task to the child, started if there is none."""
        if self._process is not None and self._process.poll() is not None:
            self._end(at_once=True)  # it died while it had nothing to do
        self.task = task
        self._begun = time.monotonic()
        self._received.clear()
        self._noise.seek(0)
        self._noise.truncate()
        if self._process is None:
            self._process = _started(self._noise)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died already: the next look finds out how
            self._process.stdin.write(task.text.encode("ascii") + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """Return what becomes readable when there is something to look at."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def seconds_left(self) -> float | None:
        """Return the seconds until the task is killed; None where it never is."""
        return None if self._kill_after is None else max(0.0, self._begun + self._kill_after - time.monotonic())

    def look(self) -> Outcome | None:
        """Return the outcome if the task has ended, or its time has; the lane is then idle."""
        assert self.task is not None
        assert self._process is not None
        ended = self._process.poll() is not None  # asked before reading: what it wrote last is still there
        ended |= self._read()
        if self._received.endswith(b"\n"):
            outcome = self._answered()
        elif ended:
            outcome = self._died()
        elif self.seconds_left() == 0:
            outcome = self._killed()
        else:
            return None
        self.task = None
        return outcome

    def stop(self) -> None:
        """End the child, at once if it is at work."""
        self._end(at_once=self.task is not None)
        self._noise.close()

    def _read(self) -> bool:
        """Take in what there is; return whether there will be no more."""
        try:
            while chunk := os.read(self.fileno(), 1 << 20):
                self._received += chunk
        except BlockingIOError:
            return False
        return True

    def _answered(self) -> Outcome:
        assert self.task is not None
        try:
            outcome = Outcome.from_json(bytes(self._received))
        except (ValueError, TypeError, KeyError) as error:
            self._end(at_once=True)
            return self._failed("died", f"the process of the task answered with something else: {error}")
        if not self._reuse:
            self._end(at_once=False)
        return outcome

    def _died(self) -> Outcome:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)  # the pipe closes a moment before the exit code is there
        code = self._process.returncode
        self._end(at_once=True)
        return self._failed("died", f"the process of the task ended {_how(code)} and gave no answer")

    def _killed(self) -> Outcome:
        self._end(at_once=True)
        return self._failed("killed", f"the task was killed because it had not ended after {self._kill_after} s")

    def _failed(self, kind: str, message: str) -> Outcome:
        assert self.task is not None
        size = self._noise.seek(0, os.SEEK_END)
        self._noise.seek(max(0, size - _LAST_WORDS_BYTES))
        words = self._noise.read().decode("utf-8", "replace")
        failure = Failure(kind=kind, exception="", message=message, traceback=words)
        return Outcome(key=self.task.key, failure=failure, seconds=time.monotonic() - self._begun)

    def _end(self, *, at_once: bool) -> None:
        if (process := self._process) is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        if not at_once:
            with suppress(BrokenPipeError):
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        self._process = None


def _started(noise: IO[bytes]) -> subprocess.Popen[bytes]:
    path = json.dumps([os.fspath(folder) or os.getcwd() for folder in sys.path])  # noqa: PTH109
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _BOOT, path],  # -P: a json.py in the present folder is not the one meant
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=noise,
        start_new_session=True,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process


def _how(code: int | None) -> str:
    if code is None:
        return "its talk"
    if code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"by {name}" + (", which the system sends when memory runs out," if name == "SIGKILL" else "")
