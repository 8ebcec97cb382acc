"""What an engine is: something that runs tasks and yields how each ended, as it ends, in any order.

Engine "serial": one task after the other, in this process. A task that crashes the process ends the run.

The parent's side of engine "isolated": one child process at a time, and the task it works on.

A child leads a session of its own. So the terminal's Ctrl-C reaches the parent alone, and a kill takes the child's
children along (CBC, say). What it prints goes to a file without a name, whose end is shown if it dies.

Engine "isolated": every task in a child process of its own, so that a crash, a leak or a deaf solver harms no other.

The child is a fresh interpreter, not a fork: nothing of the parent's state reaches it but `sys.path` and the
environment. With `reuse`, a child that has answered gets the next task, which saves its imports; one that died or was
killed is replaced.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import IO, ClassVar, Protocol

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.runner.engines import child
from lbopt.runner.execute import execute
from lbopt.runner.row import Failure, Outcome
from lbopt.runner.task import Task

#: So many processes are started on any machine that is asked for them; beyond, four times the cores.
_MOST_JOBS = 64


class Engine(Protocol):
    """Runs tasks.

    When the iterator is closed early, also by Ctrl-C, whatever still runs is stopped.
    """

    @property
    def name(self) -> str:
        """As the user writes it; stored with every row."""

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield one outcome for each task."""


def checked_jobs(jobs: object) -> int:
    """Return a number of processes that can be had."""
    jobs = whole("jobs", jobs, 1)
    most = max(_MOST_JOBS, 4 * (os.cpu_count() or 1))
    if jobs > most:
        raise InputError(
            f"jobs is {jobs}; this machine has {os.cpu_count()} cores, and would drown in more than {most}"
        )
    return jobs


@dataclass(frozen=True, slots=True)
class Serial:
    """No processes, no options."""

    name: ClassVar[str] = "serial"

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes in the order of the tasks."""
        yield from map(execute, tasks)


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


#: A child that died is seen at once, unless one that it forked holds its end of the pipe: then after this long.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Isolated:
    """A child process for each task; POSIX alone.

    Parameters
    ----------
    jobs
        How many run at a time. One, so that timings are not of neighbours, unless asked for more.
    kill_after
        Seconds from when a task is handed to its child, start and imports included, after which it is killed.
    reuse
        Whether a child takes the next task after it has answered.
    """

    jobs: int = 1
    kill_after: float | None = None
    reuse: bool = False

    name: ClassVar[str] = "isolated"

    def __post_init__(self) -> None:
        checked_jobs(self.jobs)
        limit = self.kill_after
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf):
            raise InputError(f"kill_after is {limit!r}; expected seconds, more than 0, or None")
        if os.name != "posix":
            raise InputError("engine 'isolated' needs a POSIX system; take engine 'serial' or 'joblib' here")

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes as they come; when closed early, kill what still runs."""
        waiting = deque(tasks)
        lanes = [Lane(kill_after=self.kill_after, reuse=self.reuse) for _ in range(min(self.jobs, len(waiting)))]
        try:
            while True:
                for lane in lanes:
                    if lane.task is None and waiting:
                        lane.begin(waiting.popleft())
                busy = [lane for lane in lanes if lane.task is not None]
                if not busy:
                    return
                limits = [left for lane in busy if (left := lane.seconds_left()) is not None]
                wait([lane.fileno() for lane in busy], min([_LOOK_SECONDS, *limits]))
                for lane in busy:
                    if (outcome := lane.look()) is not None:
                        yield outcome
        finally:
            for lane in lanes:
                lane.stop()
