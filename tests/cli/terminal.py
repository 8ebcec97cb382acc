"""The command line as a terminal sees it: exit code, standard output, standard error."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def environment(**changes):
    """The environment of a subprocess that finds this checkout's lbopt."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **changes}


def lbopt(*words, cwd, **changes):
    """Run ``python -m lbopt`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lbopt", *map(str, words)],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
