"""A copy of the checkout in which one module at a time is changed, and the tests that run in it.

The checkout itself is never written. Byte code in the copy is checked by the hash of its source, because a mutant can
have the size and the second of the original. What tests write (kernels of a mutant, Hypothesis, temporary files) goes
to a folder that is deleted with the trial.
"""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.mutation.forking import Forking
from tests.mutation.operators import Mutant
from tests.mutation.scope import ROOT

PLUGINS = ["_hypothesis_pytestplugin", "tests.mutation.brief"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of tests ended: "passed", "failed" or "timeout", which test failed first, and seconds."""

    how: str
    first: str
    seconds: float
    output: str


class Workplace:
    """The copy.

    Parameters
    ----------
    folder
        Where it is made; an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self._times = folder / "times.xml"
        self._processes: dict[bool, Forking] = {}
        known = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        compileall.compile_dir(self.root, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Change one module within the block."""
        path = self.root / "lbopt" / mutant.id.split("::")[0]
        original = path.read_bytes()
        path.write_text(mutant.text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(original)

    def run(self, tests: list[str], interpreted: bool, limit: float) -> Ending:
        """Run test files in a process of their own, up to the first failure.

        Parameters
        ----------
        tests
            Test files, in this order.
        interpreted
            Whether kernels run as plain Python.
        limit
            Seconds of wall clock.
        """
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutant-") as temporary:
            output = Path(temporary) / "output.txt"
            code = self._forking(interpreted).run(
                _words(tests, interpreted, self._times), _own_folders(interpreted, temporary), output, limit
            )
            said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        if code == 5:
            raise RuntimeError(f"no test of {tests} was chosen; see the marks in tests/mutation/workplace.py")
        how = "timeout" if code is None else "passed" if code == 0 else "failed"
        return Ending(how, _first_failure(said), time.monotonic() - begin, said)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes.values():
            process.close()

    def _forking(self, interpreted: bool) -> Forking:
        if interpreted not in self._processes:
            self._processes[interpreted] = Forking(self.root, _environment(self.root, interpreted))
        return self._processes[interpreted]

    def seconds(self) -> dict[str, float]:
        """Return the seconds that each test file took in the last run that came to its end."""
        found: dict[str, float] = defaultdict(float)
        for case in ElementTree.parse(self._times).iter("testcase"):
            found[case.attrib["classname"].replace(".", "/") + ".py"] += float(case.attrib["time"])
        return dict(found)


def _words(tests: list[str], interpreted: bool, times: Path) -> list[str]:
    marks = "not slow and not alone" + (" and not jit" if interpreted else "")
    plugins = [word for plugin in PLUGINS for word in ("-p", plugin)]
    words = ["-q", "-x", "-rfE", "--tb=line", "-p", "no:cacheprovider", *plugins, "-m", marks]
    return [*words, f"--junitxml={times}", *tests]


def _environment(root: Path, interpreted: bool) -> dict[str, str]:
    """Return the environment of all trials."""
    one_core = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {
        "LBOPT_SHARED": str(ROOT.parent / "shared"),
        **os.environ,
        **dict.fromkeys(one_core, "1"),
        "PYTHONPATH": str(root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "NUMBA_DISABLE_JIT": "1" if interpreted else "0",
    }


def _own_folders(interpreted: bool, temporary: str) -> dict[str, str]:
    """Return what a trial has for itself; a mutant of a kernel keeps what it compiles in the temporary folder."""
    folders = {"TMPDIR": temporary, "HYPOTHESIS_STORAGE_DIRECTORY": temporary}
    return {**folders, "LBOPT_CACHE": temporary} if interpreted else folders


def _first_failure(output: str) -> str:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ")[1]
    return ""
