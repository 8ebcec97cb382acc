"""Runs of the runner in real processes, which are then interrupted or killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

from lbopt.runner import Store

ROOT = Path(__file__).resolve().parents[2]

#: Where the programs keep passing things; None means where they run.
TEMPORARY = None

#: Runs tasks of which four end at once and the others when there is a file named open; the engine is an expression.
RUN = """
import sys
from lbopt.runner import *
with Store("store.sqlite") as store:
    run_tasks([Task("runner.jobs:gated", {"x": x}, None) for x in range(10)], store, engine=eval(sys.argv[1]))
"""


def start(code, *words, cwd):
    """Start Python on a program that finds this checkout's lbopt and these tests' jobs."""
    path = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": TEMPORARY or str(cwd)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(there, *, within=30):
    """Wait for a condition."""
    limit = time.monotonic() + within
    while not there():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.01)


def wait_for_rows(path, count):
    """Wait until a store that another process is writing has so many rows."""

    def enough():
        if not path.exists() or path.stat().st_size == 0:
            return False
        with Store(path, read_only=True) as store:
            return len(store) >= count

    wait_until(enough)


def alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
