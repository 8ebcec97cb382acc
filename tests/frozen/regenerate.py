"""Write the frozen behaviour anew: `make frozen`, or `python -m tests.frozen.regenerate [NAME ...]`.

What is frozen is a promise to users. Say in the commit, for every number, key, header or option that changes, why.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # tests import each other from here

from frozen import answers, command_line, digests, runs, searches  # noqa: E402


def write(name: str, document: Any) -> None:
    """Write one file."""
    path = HERE / "data" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run_twice(name: str) -> dict[str, Any]:
    """A run whose columns and documents that differ the second time, such as times, have no digest."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        before = time.perf_counter()
        first = runs.frozen_of(name, Path(one))
        spent = time.perf_counter() - before
        second = runs.frozen_of(name, Path(other))
    for file, columns in first["tables"].items():
        for column in columns:
            if columns[column] != second["tables"][file][column]:
                columns[column] = None
    first["documents"] = {k: v if v == second["documents"][k] else None for k, v in first["documents"].items()}
    unsteady = [f"{f}:{c}" for f, cs in first["tables"].items() for c, v in cs.items() if v is None]
    unsteady += [k for k, v in first["documents"].items() if v is None]
    print(f"{name}: {spent:.1f} s; not frozen: {', '.join(unsteady) or 'nothing'}", flush=True)
    return first


def kept_options() -> dict[str, Any]:
    """The options of every verb, and those that were once: each goes on being understood."""
    now, before = command_line.all_options(), json.loads((HERE / "data" / "options.json").read_text(encoding="utf-8"))
    named = {verb: {name for row in rows for name in row["names"]} for verb, rows in now.items()}
    gone = {
        verb: [row for row in rows if not named.get(verb, set()) & set(row["names"])] for verb, rows in before.items()
    }
    return {verb: [*now.get(verb, ()), *gone.get(verb, ())] for verb in {**before, **now}}


def main(chosen: list[str]) -> None:
    """Write all files, or only the named parts: options, exit-codes, answers, search-states, or names of runs."""
    if not chosen or "options" in chosen:
        write("options", kept_options())
    with tempfile.TemporaryDirectory() as folder:
        if not chosen or "exit-codes" in chosen:
            write("exit_codes", command_line.exit_codes(Path(folder)))
        if not chosen or "answers" in chosen:
            found = {" ".join(case): answers.answer(*case) for case in answers.cases()}
            write("answers", {"machine": digests.machine(), "answers": found})
    if not chosen or "search-states" in chosen:
        write("search_states", {name: list(searches.states(name)) for name in searches.CASES})
    for name in runs.RUNS:
        if not chosen or name in chosen:
            write(f"runs/{runs.file_name(name)}", {"machine": digests.machine(), **run_twice(name)})


if __name__ == "__main__":
    main(sys.argv[1:])
