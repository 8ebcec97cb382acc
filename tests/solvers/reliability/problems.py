"""Random problems of every kind against the enumeration: `python -m tests.solvers.reliability.problems --seed 1`.

It ends with exit code 1 at the first contradiction, which it writes into `cases`; `test_problems.py` asks what
is there again. A run that was stopped goes on.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # tests import each other from here

from solvers.reliability.answers import as_case, contradiction  # noqa: E402
from solvers.reliability.drawn import drawn  # noqa: E402
from solvers.reliability.long_run import run  # noqa: E402

CASES = HERE / "cases"


def main() -> int:
    """Run as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20_000, help="how many problems")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=8, help="most requests of a problem")
    parser.add_argument("--state", type=Path, help="file that a stopped run goes on from; default build/problems-SEED")
    given = parser.parse_args()

    def trial(number: int, seen: Counter) -> str | None:
        one = drawn(f"{given.seed}/{number}", requests=given.requests)
        wrong = contradiction(one, seen)
        if wrong is not None:
            CASES.mkdir(exist_ok=True)
            path = CASES / f"{one.problem.digest[:12]}.json"
            path.write_text(json.dumps(as_case(one, wrong), indent=1) + "\n", encoding="utf-8")
            return f"{wrong}; see {path}"
        return None

    return run(trial, given.problems, given.state or Path("build") / f"problems-{given.seed}.json")


if __name__ == "__main__":
    sys.exit(main())
