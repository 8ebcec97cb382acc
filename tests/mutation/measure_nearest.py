"""Measure which test files reach which modules: `python -m tests.mutation.measure_nearest` writes nearest.toml anew.

Two runs under coverage with the name of the running test as context: without compilation for kernels, with it for the
rest. A test file is near to a module if it reaches much of it, little else, and in little time. Half an hour; the rows
under `by_hand` (what runs in child processes, and constants, which coverage does not see) are kept.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from coverage import CoverageData

from tests.mutation.scope import NEAREST, ROOMS, ROOT, modules

#: Test files of a run; the first without compilation.
FOLDERS = {
    True: ["tests/kernels", "tests/policies", "tests/simulator"],
    False: ["tests/solvers", "tests/policies", "tests/simulator", "tests/runner"],
}

#: Test files of a module take at most this many seconds together, the nearest one aside.
MOST_SECONDS = 60.0

#: Starting pytest counts as much.
STARTING = 2.0

HEAD = """\
# Test files of each module in scope, nearest first. Kernels are tried by the test of their twin before these, see
# tests/rules/kernel_twins.toml. The last table is written by `python -m tests.mutation.measure_nearest`; the first is
# for modules that are in no other.

"""


def measure(interpreted: bool, folder: Path) -> tuple[CoverageData, dict[str, float]]:
    """Run the tests under coverage; return what they reached, and the seconds of each test file.

    Parameters
    ----------
    interpreted
        Whether kernels run as plain Python.
    folder
        For the files of the run.
    """
    settings, data, times = folder / "settings", folder / f"data-{interpreted}", folder / f"times-{interpreted}.xml"
    settings.write_text("[run]\nsource =\n" + "".join(f"    lbopt/{room.folder}\n" for room in ROOMS))
    marks = "not slow and not alone" + (" and not jit" if interpreted else "")
    words = ["-q", "-m", marks, "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "NUMBA_DISABLE_JIT": "1" if interpreted else "0"}
    command = [sys.executable, "-m", "pytest", *words, f"--junitxml={times}", *FOLDERS[interpreted]]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return read(data, times)


def read(data: Path, times: Path) -> tuple[CoverageData, dict[str, float]]:
    """Return the results of a run from its files.

    Parameters
    ----------
    data, times
        The database of coverage, and the times of the tests as JUnit has them.
    """
    reached = CoverageData(str(data))
    reached.read()
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(times).iter("testcase"):
        seconds[case.attrib["classname"].replace(".", "/") + ".py"] += float(case.attrib["time"])
    return reached, seconds


@cache
def breadth(reached: CoverageData) -> Counter[str]:
    """Return how many modules each test file reaches."""
    found: Counter[str] = Counter()
    for path in reached.measured_files():
        contexts = itertools.chain(*reached.contexts_by_lineno(path).values())
        found.update({context.split("::")[0] for context in contexts})
    return found


def near(reached: CoverageData, seconds: dict[str, float], file: str) -> list[str]:
    """Return the test files of a module, those first that reach most lines in a second.

    Parameters
    ----------
    reached
        What the tests reached.
    seconds
        Of each test file.
    file
        Path of the module in the package.
    """
    lines: dict[str, set[int]] = defaultdict(set)
    for line, contexts in reached.contexts_by_lineno(str(ROOT / "lbopt" / file)).items():
        for context in contexts:
            if "::" in context:
                lines[context.split("::")[0]].add(line)
    cost = {test: breadth(reached)[test] * (STARTING + seconds[test]) for test in lines}
    order = sorted(lines, key=lambda test: (-len(lines[test]) / cost[test], test))
    chosen: list[str] = []
    total = 0.0
    for test in order:
        is_more = bool(lines[test] - set().union(*(lines[other] for other in chosen)))
        if not chosen or (total + seconds[test] <= MOST_SECONDS and (is_more or len(chosen) < 4)):
            chosen.append(test)
            total += seconds[test]
    return chosen


def write(measured: dict[str, list[str]]) -> None:
    """Write the map anew; rows by hand stay."""
    text = NEAREST.read_text(encoding="utf-8") if NEAREST.exists() else ""
    known = tomllib.loads(text)
    tables = {"by_room": known.get("by_room", {}), "by_hand": known.get("by_hand", {}), "measured": measured}
    blocks = []
    for table, rows in tables.items():
        lines = [f"[{table}]"]
        for file, tests in rows.items():
            row = f'"{file}" = {json.dumps(tests)}'
            inner = "".join(f'    "{test}",\n' for test in tests)
            lines.append(row if len(row) <= 120 else f'"{file}" = [\n{inner}]')
        blocks.append("\n".join(lines) + "\n")
    NEAREST.write_text(HEAD + "\n".join(blocks), encoding="utf-8")


def main() -> None:
    """Measure both ways and write the map."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {interpreted: measure(interpreted, Path(folder)) for interpreted in FOLDERS}
    places = [(room, file) for room in ROOMS for file in modules(room.folder)]
    found = {file: near(*runs[room.interpreted], file) for room, file in places}
    write({file: tests for file, tests in found.items() if tests})


if __name__ == "__main__":
    main()
