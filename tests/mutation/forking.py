"""A process that has loaded pytest and Numba, but nothing of lbopt, and forks one child for each run of tests.

Loading them takes longer than the tests that kill most mutants. A child imports the package and the tests itself, so
that it is as good as a fresh process. `Forking` is the other side of the pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Address space of a test process, bytes.
MEMORY = 6 * 2**30

#: Seconds between two looks at a child.
_NAP = 0.02


class Forking:
    """The process, as its user sees it.

    Parameters
    ----------
    root
        Working directory of the tests.
    environment
        Environment of the tests.
    """

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.mutation.forking"]
        self._process = subprocess.Popen(
            command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words: list[str], environment: dict[str, str], output: Path, limit: float) -> int | None:
        """Run pytest and return its exit code, negative for a signal; None where the time limit came first.

        Parameters
        ----------
        words
            Arguments of pytest.
        environment
            What is added to the environment.
        output
            The file that gets what it prints.
        limit
            Seconds of wall clock.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"words": words, "environment": environment, "output": str(output), "limit": limit}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code: int | None = json.loads(self._process.stdout.readline())
        return code

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _child(words: list[str], environment: dict[str, str], output: str) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs in the background
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, file), (2, file)):
        os.dup2(source, target)
    os.environ.update(environment)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import pytest

    code = 3
    try:
        code = int(pytest.main(words))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, limit: float) -> int | None:
    """Return the exit code of a child, None at the time limit; whatever it has started ends with it."""
    end = time.monotonic() + limit
    code = None
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(_NAP)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if code is None:
        os.waitpid(child, 0)
    return code


def main() -> None:
    """Fork a child for each line of orders, and answer with its exit code."""
    import hypothesis
    import numba
    import pytest
    import scipy.special

    assert (hypothesis, numba, pytest, scipy) and "lbopt" not in sys.modules
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _child(order["words"], order["environment"], order["output"])
        print(json.dumps(_wait(child, order["limit"])), flush=True)


if __name__ == "__main__":
    main()
