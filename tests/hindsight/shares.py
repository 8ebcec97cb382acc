"""`python -m tests.hindsight.shares --limit 60`: the share of frozen runs that is proved, times and gaps by class.

Prints one row a class: runs, share proved, median seconds, and median and worst gap of barriers and of imbalance. A gap
is (upper - lower) / upper. With `--cpu` seconds are those of the processor that the run itself used, so that other work
on the machine does not count; kernels are then compiled anew, because the clock is compiled into them. `--solver` asks
HiGHS or CP-SAT as well (always by the wall clock). Every run is written to `--out` as it ends, as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path


def use_processor_time() -> None:
    """Let deadlines count processor time; before any kernel is imported."""
    os.environ["LBOPT_CACHE"] = str(Path(tempfile.gettempdir()) / f"lbopt-processor-time-{os.getuid()}")
    monotonic = time.CLOCK_MONOTONIC
    time.CLOCK_MONOTONIC = time.CLOCK_PROCESS_CPUTIME_ID
    from lbopt.kernels import deadline

    time.CLOCK_MONOTONIC = monotonic
    deadline.now = time.process_time_ns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--sizes", type=int, nargs="+", default=[48, 64, 100, 200])
    parser.add_argument("--slots", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--count", type=int, default=200, help="frozen runs of each size; nine make one of each class")
    parser.add_argument("--tuning", action="store_true", help="other seeds")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor")
    parser.add_argument("--solver", nargs="*", default=[], choices=["highs", "cp-sat"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.cpu:
        use_processor_time()
    from lbopt.hindsight.optimum import optimum
    from lbopt.hindsight.program import solve_program
    from lbopt.hindsight.timetable import Timetable
    from tests.hindsight.frozen import LENGTHS, frozen_runs

    for groups in ([0, 0, 0, 0, 0], [0] * 7):  # compile everything first
        optimum(Timetable(2, 4, groups, range(1, len(groups) + 1), [3] * len(groups)), 30)
    rows = []
    for size in options.sizes:
        for run in frozen_runs(size, options.count, tuning=options.tuning):
            if run.slots not in options.slots:
                continue
            result = optimum(run.timetable, options.limit)
            answers = [("own", result.lower, result.upper, result.seconds)]
            for solver in options.solver:
                answer = solve_program(run.timetable, solver, options.limit)
                answers.append((solver, answer.lower or 0, answer.upper, answer.seconds))
            total = int(run.timetable.totals().sum())
            for who, lower, upper, seconds in answers:
                gap = float("nan") if upper is None else (upper - lower) / upper
                waste = None if upper is None else 4 * upper - total
                row = {"who": who, "size": size, "slots": run.slots, "lengths": run.lengths, "number": run.number}
                row |= {"lower": lower, "upper": upper, "seconds": round(seconds, 3), "gap": gap}
                row |= {"imbalance_gap": 4 * (upper - lower) / waste if waste else 0.0, "stop": result.stop}
                rows.append(row)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    gaps = "gap of barriers: median | worst | of imbalance: median | worst"
    print(f"| who | N | B | lengths | runs | proved | median s | {gaps} |")
    print("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for who in ["own", *options.solver]:
        for size in options.sizes:
            for slots in options.slots:
                for lengths in LENGTHS:
                    key = (who, size, slots, lengths)
                    some = [r for r in rows if (r["who"], r["size"], r["slots"], r["lengths"]) == key]
                    if some:
                        print(f"| {who} | {size} | {slots} | {lengths} | {len(some)} | {summary(some)} |")


def summary(some: list[dict]) -> str:
    """Share proved, median seconds and gaps of some rows."""
    proved = sum(r["lower"] == r["upper"] for r in some) / len(some)
    cells = [f"{proved:.0%}", f"{statistics.median(r['seconds'] for r in some):.1f}"]
    for key in ("gap", "imbalance_gap"):
        values = [r[key] for r in some]
        cells += [f"{statistics.median(values):.2%}", f"{max(values):.2%}"]
    return " | ".join(cells)


if __name__ == "__main__":
    main()
