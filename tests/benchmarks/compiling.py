"""CPU seconds of each verb's first use, from an empty cache, in all and by kernel.

`python -m tests.benchmarks.compiling [VERB...] [--top 8]`. Each verb runs once in a process of its own, and once more
with the kernels that it has made. Printed are the CPU seconds of both, those within Numba's compiler, and the dearest
functions: a function's seconds are its own typing and lowering, without those of functions that it calls; at an
outermost kernel, marked by *, they hold the optimisation of all that is linked into it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]

#: A small first use of each verb.
FIRST_USES = {
    "solve": "solve {root}/examples/one_step.json --solver search",
    "gap": "gap burstgpt-like -n 300 -G 3 -B 4 --states 3 --seed 1",
    "simulate": "simulate -n 300 -G 3 -B 4",
    "audit": "audit {root}/examples/logs/fleet.csv",
    "prefill": "prefill -n 100",
    "hindsight": "hindsight burstgpt-like -n 40 -G 2 -B 4 --effort 2",
}


def _child(words: str, kept: Path) -> None:
    """Run a command in this process, and keep what it and the compiler took."""
    import numba
    from numba.core import event

    stack: list[list[Any]] = []
    own: Counter[str] = Counter()
    outermost: Counter[str] = Counter()
    versions: Counter[str] = Counter()

    class Compiling(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            module = function.__module__ or "numba"
            name = f"{module.removeprefix('lbopt.kernels.')}.{function.__qualname__}"
            stack.append([name if stack else f"{name} *", time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            name, begun, within = stack.pop()
            took = time.process_time() - begun
            own[name] += took - within
            versions[name] += 1
            if stack:
                stack[-1][2] += took
            else:
                outermost[name] += took

    register: Any = event.register
    register("numba:compile", Compiling())
    sys.argv = ["lbopt", *words.split()]
    try:
        from lbopt.cli import main

        main()
    except SystemExit as ended:
        if ended.code:
            raise
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept.write_text(
        json.dumps(
            {
                "numba": numba.__version__,
                "seconds": time.process_time() + children.ru_utime + children.ru_stime,
                "own": own,
                "outermost": outermost,
                "versions": versions,
            }
        )
    )


def _run(words: str, folder: Path) -> dict[str, Any]:
    environment = os.environ | {"LBOPT_CACHE": str(folder / "cache"), "PYTHONPATH": str(_ROOT)}
    environment.pop("NUMBA_CACHE_DIR", None)
    kept = folder / "kept.json"
    command = [sys.executable, "-m", "tests.benchmarks.compiling", "--child", words.format(root=_ROOT), str(kept)]
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)  # it may write here
    read: dict[str, Any] = json.loads(kept.read_text())
    return read


def main() -> None:
    """Print the table of each verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verbs", nargs="*", default=list(FIRST_USES), help=f"of {', '.join(FIRST_USES)}")
    parser.add_argument("--top", type=int, default=8, help="functions shown of each verb")
    parser.add_argument("--child", nargs=2, metavar=("COMMAND", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child[0], Path(asked.child[1]))
        return
    for verb in asked.verbs:
        with tempfile.TemporaryDirectory() as name:
            cold, warm = (_run(FIRST_USES[verb], Path(name)) for _ in range(2))
        compiled = sum(cold["own"].values())
        kernels, functions = len(cold["outermost"]), sum(cold["versions"].values())
        print(
            f"{verb}: {cold['seconds']:.1f} s cold, {warm['seconds']:.1f} s warm; compiler {compiled:.1f} s, "
            f"{kernels} kernels of {functions} functions ({len(cold['versions'])} without their versions)"
        )
        for title, seconds in (("outermost, all below included", "outermost"), ("own", "own")):
            print(f"  {title}")
            for function, took in Counter(cold[seconds]).most_common(asked.top):
                print(f"    {took:6.2f} s  {cold['versions'][function]:3d}x  {function}")


if __name__ == "__main__":
    main()
