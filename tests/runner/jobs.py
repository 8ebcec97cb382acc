"""What the tasks of these tests do. Every process can import it: `tests` is on sys.path."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def double(x, seed=None):
    return {"twice": 2 * x, "seed": seed}


def echo(**given):
    return given


def process():
    return os.getpid()


def logged(x, log):
    """Leave a line in `log` when it begins."""
    with Path(log).open("a") as stream:
        stream.write(f"{x}\n")
    return x


def gated(x):
    """Leave a line in calls.txt when it begins; from the fifth on, wait for a file named open."""
    logged(x, "calls.txt")
    while x >= 4 and not Path("open").exists():
        time.sleep(0.01)
    return x


def big(x):
    return [x] * 8_000


def fails_until(there):
    """Fail as long as there is no such file."""
    if not Path(there).exists():
        raise ArithmeticError("not yet: \udcff\0")
    return "done"


def refuses():
    """Refuse what the user asked."""
    from lbopt.exceptions import InputError

    raise InputError("nothing was given; expected something")


def leaves(how):
    """End in a way in which no function should."""
    if how == "exit":
        sys.exit(3)
    if how == "generator":
        raise GeneratorExit
    raise Unspeakable


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


def unstorable(what):
    return {
        "set": {1},
        "nan": {"a": [1.0, math.nan]},
        "key": {"a": {1: 2}},
        "complex": [1j],
        "digits": 10**5000,
        "loop": loop(),
    }[what]


def loop():
    around = []
    around.append(around)
    return around


def dies(how):
    """Take the process down."""
    if how == "segfault":
        ctypes.string_at(0)
    if how == "fork" and os.fork() == 0:
        time.sleep(60)  # holds every pipe of its parent open
    if how in ("exit", "fork"):
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def dies_or(x, bad):
    """Answer x after a moment, unless it is the bad one."""
    time.sleep(0.05)
    if x == bad:
        dies("segfault")
    return x


def noisy(x):
    """Print on every channel, from Python and from below it, and read what is not for it."""
    print('{"key": "from Python"}\n', flush=True)
    os.write(1, b'{"key": "from below"}\n' * 2000)
    subprocess.run(["echo", "from a child"], check=True)
    return [x, sys.stdin.read()]


def deaf(pid_file, seconds=60):
    """Start a child, leave its process id and one's own, and hear nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", str(seconds)])
    partial = Path(f"{pid_file}.partial")
    partial.write_text(f"{os.getpid()} {child.pid}")
    partial.rename(pid_file)
    time.sleep(seconds)


def swallows():
    """Catch Ctrl-C and answer with what there is so far, as a study does."""
    try:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        return "half"


def interrupted_twice():
    """Make another error of Ctrl-C."""
    try:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        raise ValueError("was interrupted") from None


def slow_logged(x, log):
    """Leave a line in `log` when it begins, and take a moment."""
    logged(x, log)
    time.sleep(0.05)
    return x


def kills_worker(x, bad):
    """Answer x, unless it is the bad one, which takes its parent along: the worker of Dask that started it."""
    if x == bad:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return x


def whose(x):
    """Return the number of the process that started this one: with Dask, the worker."""
    time.sleep(0.01)
    return os.getppid()
