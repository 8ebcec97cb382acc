"""Compare this checkout with an earlier one: CPU time of the frozen classes of states, and of a first, cold solve.

python tests/benchmarks/paired.py --before ../earlier --data ../shared/data rich-burstgpt-g16 leftover-azure-g32
python tests/benchmarks/paired.py --before ../earlier --data ../shared/data --tie leximax rich-azure-g4
python tests/benchmarks/paired.py --before ../earlier --cold 3

Two processes, one for each checkout, solve the same states by turns. Of each state the least CPU time of all rounds
counts, which another program on the same machine disturbs least.
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
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[2]
FILES = {"burstgpt": "burstgpt_8000.json", "azure": "azure_llm_2023_conv.csv"}

#: A first solve compiles all that the search needs.
COLD = (
    "import lbopt; lbopt.solve(lbopt.StepProblem.now([9, 0, 3], [1, 2, 2], [1, 2, 4, 5, 7, 9]), 'search', tie={tie!r})"
)


def answer_requests(data: Path) -> None:
    """Solve the classes that come as lines of JSON, and write a line of CPU seconds and objectives for each."""
    from lbopt import solve
    from lbopt.instances.sources import open_trace
    from tools.steady import read_state_sets

    classes: dict[str, list[Any]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        name, count = request["name"], request["count"]
        if name not in classes:
            chosen = read_state_sets()[name]
            file = FILES.get(chosen.trace)  # an earlier checkout may not know where records come from
            records = chosen.records(data) if file is None else open_trace(str(data / file))
            classes[name] = list(chosen.problems(records, count))
        seconds, values = [], []
        for problem in classes[name]:
            begun = time.process_time()
            result = solve(problem, "search", tie=request["tie"], time_limit=request["limit"])
            seconds.append(time.process_time() - begun)
            values.append([int(result.objective), result.status])
        print(json.dumps({"seconds": seconds, "values": values}), flush=True)


class Checkout:
    """A process that solves with the code of one checkout."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--answer", "--data", str(data)],
            env=_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def solve(self, **request: Any) -> dict[str, Any]:
        """Return CPU seconds and objectives of the states of a class."""
        assert self.process.stdin is not None and self.process.stdout is not None, "both are pipes"
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))


def compare_states(options: argparse.Namespace) -> None:
    """Print a line for each class: median and sum of CPU time before and after, and their quotients."""
    both = [Checkout(folder, options.data) for folder in (options.before, HERE)]
    print("| class | states | median before, µs | after, µs | quotient | of all states |\n|---|---|---|---|---|---|")
    for name in options.classes:
        request = {"name": name, "count": options.count, "tie": options.tie, "limit": options.limit}
        first = [one.solve(**request) for one in both]  # compiles, loads, and fills caches
        if [value for value, _ in first[0]["values"]] != [value for value, _ in first[1]["values"]]:
            print(f"{name}: the objectives differ")
        least = [[float("inf")] * options.count for _ in both]
        for turn in range(options.rounds):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                seconds = both[which].solve(**request)["seconds"]
                least[which] = list(map(min, least[which], seconds))
        before, after = (1e6 * median(times) for times in least)
        whole = sum(least[1]) / sum(least[0])
        print(
            f"| {name} | {options.count} | {before:.0f} | {after:.0f} | {after / before:.3f} | {whole:.3f} |",
            flush=True,
        )


def compare_cold(options: argparse.Namespace) -> None:
    """Print the CPU seconds of first solves, each with an empty cache of kernels."""
    code = COLD.format(tie=options.tie)
    print("| run | before, s | after, s |\n|---|---|---|")
    for turn in range(options.cold):
        spent = [0.0, 0.0]
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            with tempfile.TemporaryDirectory() as cache:
                begun = _children()
                environment = _environment((options.before, HERE)[which]) | {"LBOPT_CACHE": cache}
                subprocess.run([sys.executable, "-c", code], env=environment, cwd=cache, check=True)
                spent[which] = _children() - begun
        print(f"| {turn + 1} | {spent[0]:.1f} | {spent[1]:.1f} |", flush=True)


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="frozen classes of states")
    parser.add_argument("--before", type=Path, help="the earlier checkout")
    parser.add_argument("--data", type=Path, help="folder of the trace files")
    parser.add_argument("--count", type=int, default=50, help="states of a class")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds a state")
    parser.add_argument("--tie", default="any", choices=("any", "leximax"))
    parser.add_argument("--cold", type=int, default=0, metavar="RUNS", help="time first solves instead")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.answer:
        answer_requests(chosen.data)
    elif chosen.cold:
        compare_cold(chosen)
    else:
        compare_states(chosen)
