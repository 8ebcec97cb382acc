"""`python -m tests.hindsight.shares --limit 60`: the share of frozen runs that is closed, times and gaps by class.

Prints one row a class: runs, share closed, median seconds, and median and worst gap of barriers and of imbalance. A gap
is (upper - lower) / upper. `--solver` says who is asked: "exact" (as `lbopt hindsight` does), "search", "cp-sat" or
"highs". Every run is written to `--out` as it ends, as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from lbopt.hindsight.optimum import optimum
from tests.hindsight.frozen import LENGTHS, frozen_runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--sizes", type=int, nargs="+", default=[48, 64, 100, 200])
    parser.add_argument("--slots", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--count", type=int, default=200, help="frozen runs of each size; nine make one of each class")
    parser.add_argument("--tuning", action="store_true", help="other seeds")
    parser.add_argument("--solver", nargs="+", default=["exact"], choices=["exact", "search", "highs", "cp-sat"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for size in options.sizes:
        for run in frozen_runs(size, options.count, tuning=options.tuning):
            for solver in options.solver if run.slots in options.slots else ():
                result = optimum(run.timetable, options.limit, solver=solver)
                lower, upper = result.lower, result.upper
                waste = 4 * upper - int(run.timetable.totals().sum())
                row = {"who": solver, "size": size, "slots": run.slots, "lengths": run.lengths, "number": run.number}
                row |= {"lower": lower, "upper": upper, "seconds": round(result.seconds, 3), "proof": result.proof}
                row |= {"gap": (upper - lower) / upper, "imbalance_gap": 4 * (upper - lower) / waste if waste else 0.0}
                rows.append(row)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    gaps = "gap of barriers: median | worst | of imbalance: median | worst"
    print(f"| who | N | B | lengths | runs | closed | of these claimed | median s | {gaps} |")
    print("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for who in options.solver:
        for size in options.sizes:
            for slots in options.slots:
                for lengths in LENGTHS:
                    key = (who, size, slots, lengths)
                    some = [r for r in rows if (r["who"], r["size"], r["slots"], r["lengths"]) == key]
                    if some:
                        print(f"| {who} | {size} | {slots} | {lengths} | {len(some)} | {summary(some)} |")


def summary(some: list[dict]) -> str:
    """Runs closed, seconds and gaps of some rows."""
    closed = [r for r in some if r["lower"] == r["upper"]]
    claimed = sum(r["proof"].startswith("claimed") for r in closed)
    cells = [str(len(closed)), str(claimed), f"{statistics.median(r['seconds'] for r in some):.1f}"]
    for key in ("gap", "imbalance_gap"):
        values = [r[key] for r in some]
        cells += [f"{statistics.median(values):.2%}", f"{max(values):.2%}"]
    return " | ".join(cells)


if __name__ == "__main__":
    main()
