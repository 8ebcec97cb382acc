"""Processes that end with the test, whatever happens: Ctrl-C, a failure, a rank that dies, even the death of the test.

Each runs in a process group of its own, and has a guard that waits for the end of a pipe. The test holds the other end:
when it ends in any way the system closes it, and the guard kills the group, grandchildren included.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.engine.http_raw import send

#: Waits for the end of its input, then kills the group whose number it was given.
_GUARD = "cat >/dev/null; kill -s KILL -- -$0"
#: Seconds that a process has to end by itself.
_GRACE = 10.0


class NotStartedError(Exception):
    """A process that did not come up; the message is one line."""


@dataclass(frozen=True, slots=True)
class Process:
    """A program that was started.

    Parameters
    ----------
    name, url
        What it is, and where it answers; empty where it does not.
    popen, guard
        Leader of its group, and its guard.
    log
        File of its output.
    """

    name: str
    url: str
    popen: subprocess.Popen[bytes]
    guard: subprocess.Popen[bytes]
    log: Path

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the program and all it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, number)


class Processes:
    """Programs of one test, which end in reverse order.

    Parameters
    ----------
    folder
        For their logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[Process] = []
        self._held, self._ours = os.pipe()  # neither end is inherited, but as a guard's input

    def start(self, name: str, words: list[str], url: str = "", env: Mapping[str, str] | None = None) -> Process:
        """Start a program; its log is `NAME.log`."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as lines:
            popen = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        guard = subprocess.Popen(["/bin/sh", "-c", _GUARD, str(popen.pid)], stdin=self._held, start_new_session=True)
        self.running.append(Process(name, url, popen, guard, log))
        return self.running[-1]

    def stop(self, process: Process) -> None:
        """End a program and all it has started: SIGTERM first, then SIGKILL to its group."""
        with suppress(ProcessLookupError):
            process.popen.terminate()
            process.kill(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            process.popen.wait(_GRACE)
        process.kill()
        process.popen.wait()
        process.guard.kill()
        process.guard.wait()
        self.running.remove(process)

    def stop_all(self) -> None:
        """End everything, the last that was started first; all get SIGTERM at once."""
        for process in self.running:
            with suppress(ProcessLookupError):
                process.popen.terminate()
        for process in reversed(list(self.running)):
            self.stop(process)

    def close(self) -> None:
        """End everything and the guards' pipe."""
        try:
            self.stop_all()
        finally:
            for end in (self._ours, self._held):
                with suppress(OSError):
                    os.close(end)


@contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """Give programs that end with the block, and turn SIGTERM and SIGHUP into the end of it, as Ctrl-C is."""

    def leave(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    started = Processes(folder)
    try:
        yield started
    finally:
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave anything behind
        try:
            started.close()
        finally:
            signal.signal(signal.SIGINT, interrupt)
            for number, handler in before.items():
                signal.signal(number, handler)


def wait_until_up(several: list[Process], path: str, seconds: float) -> float:
    """Wait until all answer 200 at a path, or accept connections where the path is empty; return the seconds it took.

    Raises
    ------
    NotStartedError
        If one ends or is not up in time.
    """
    began = time.monotonic()
    waiting = list(several)
    while waiting:
        for process in list(waiting):
            if process.popen.poll() is not None:
                raise NotStartedError(f"{process.name} ended at its start: {last_line(process.log)} ({process.log})")
            if listens(process.url) if not path else send(process.url, path, seconds=2).status == 200:
                waiting.remove(process)
        if waiting and time.monotonic() - began > seconds:
            names = ", ".join(one.name for one in waiting)
            raise NotStartedError(
                f"{names} not up within {seconds:g} s: {last_line(waiting[0].log)} ({waiting[0].log})"
            )
        time.sleep(0.2)
    return time.monotonic() - began


def listens(url: str) -> bool:
    """Return whether somebody accepts connections at an address."""
    parts = urlsplit(url)
    with suppress(OSError), socket.create_connection((parts.hostname, parts.port or 80), 2):
        return True
    return False


def last_line(log: Path) -> str:
    """Return the last line of a log that is not empty."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "its log is empty"
