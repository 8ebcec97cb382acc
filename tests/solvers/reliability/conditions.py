"""Random problems under conditions against the enumeration: `python -m tests.solvers.reliability.conditions --count N`.

N problems of each condition, of mixtures, and of packings are exhausted and verified, and the solvers of integer
programs get `--solver-count` of each, once by `solve` and once without a decision to start from. It ends with exit code
1 at the first contradiction, which it prints.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # tests import each other from here

from solvers.conditions.compared import bound_contradiction, contradiction, program_contradiction  # noqa: E402
from solvers.conditions.drawn import KINDS, drawn  # noqa: E402

SOLVERS = ("cp-sat", "highs", "pulp")


def wrong_case(kind: str, seed: str, solver: str, seen: Counter, **sizes) -> tuple[str, dict] | None:
    """The first contradiction of one case, and the case."""
    case = drawn(seed, kind, **sizes)
    if solver == "exact":
        wrong = program_contradiction(case, "exhaustion", seen) or bound_contradiction(case, seen)
    else:
        wrong = program_contradiction(case, solver, seen)
    wrong = wrong or contradiction(case, solver, seen)
    return None if wrong is None else (wrong, case)


def main() -> int:
    """Run as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="problems of each kind that are exhausted")
    parser.add_argument("--solver-count", type=int, default=20, help="problems of each kind for each solver")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--requests", type=int, default=5, help="most requests of a problem")
    parser.add_argument("--top", type=int, help="most tokens of a request; 3, 12 or 60 by default")
    parser.add_argument("--kind", choices=KINDS, action="append", help="one kind alone; may be repeated")
    given = parser.parse_args()
    for kind in given.kind or KINDS:
        for solver, count in (("exact", given.count), *((name, given.solver_count) for name in SOLVERS)):
            seen: Counter = Counter()
            begun = time.perf_counter()
            for number in range(count):
                wrong = wrong_case(kind, f"{given.seed}/{number}", solver, seen, requests=given.requests, top=given.top)
                if wrong is not None:
                    print(f"{kind}, {solver}, number {number}: {wrong[0]}\n{json.dumps(wrong[1])}")
                    return 1
            told = ", ".join(f"{name} {times}" for name, times in sorted(seen.items()))
            print(f"{kind}, {solver}: {count} problems, {time.perf_counter() - begun:.0f} s; {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
