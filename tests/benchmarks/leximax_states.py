"""Time `lbopt.solve` with tie="leximax" on the frozen classes of steady states.

python -m tests.benchmarks.leximax_states --data ../shared/data --count 30 --limit 5 rich-burstgpt-g16
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from lbopt import solve
from tools.steady import read_state_sets

HEAD = "| class | states | leximax proved | median ms | P90 ms | largest ms |\n|---|---|---|---|---|---|"


def measure(name: str, data: Path, count: int, limit: float, shift: int) -> str:
    chosen = read_state_sets()[name]
    problems = list(replace(chosen, seed=chosen.seed + shift).problems(chosen.records(data), count))
    solve(problems[0], tie="leximax", time_limit=0.5)  # compile or load
    seconds, closed = [], []
    for problem in problems:
        begun = time.perf_counter()
        result = solve(problem, tie="leximax", time_limit=limit)
        seconds.append(time.perf_counter() - begun)
        closed.append(result.tie == "leximax")
    spent = np.array(seconds) * 1e3
    median, tail = np.quantile(spent, [0.5, 0.9])
    return f"| {name} | {count} | {np.mean(closed):.1%} | {median:.2f} | {tail:.1f} | {spent.max():.0f} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("classes", nargs="+", choices=sorted(read_state_sets()), metavar="CLASS")
    parser.add_argument("--data", type=Path, required=True, help="folder of the trace files")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds a state")
    parser.add_argument("--shift", type=int, default=0, help="added to the seed: other states for tuning")
    options = parser.parse_args()
    print(HEAD)
    for name in options.classes:
        print(measure(name, options.data, options.count, options.limit, options.shift), flush=True)
