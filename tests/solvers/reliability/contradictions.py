"""Mid-size steps against themselves: `python -m tests.solvers.reliability.contradictions --steps 20000 --seed 1`.

Each step is solved in several ways that must agree (`ways.py`), and what is said is held against all that was found.
A contradiction is told, and kept among the regressions of `tests/solvers`; the run goes on, and its exit code is 1. A
run that was stopped goes on where it was. Everything but the minutes follows from the seed and the effort.
"""

import argparse
import json
import random
import sys
from collections import Counter
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # tests import each other from here

from solvers.reliability.held_together import COLUMNS, Contradiction, contradiction  # noqa: E402
from solvers.reliability.long_run import kept, run  # noqa: E402
from solvers.reliability.mid_steps import MidStep, mid_step  # noqa: E402
from solvers.reliability.ways import engines, forms  # noqa: E402

from lbopt.model import StepProblem  # noqa: E402

CASES = HERE.parent / "regressions" / "exact"

#: Effort of each solve: some 0.05 s on a free core; nine of ten solves end with the optimum by then.
EFFORT = 50_000

#: Steps that solvers of others can answer.
_SMALLER = {"workers": (4, 12), "requests": (10, 40)}


def trial(number: int, seen: Counter, *, seed: int, effort: int, compared: str, cases: Path) -> str | None:
    """Ask about one step in all ways; return what is wrong.

    Parameters
    ----------
    number, seed
        Of the step.
    seen
        Counts; changed in place.
    effort
        Of each solve.
    compared
        "forms" of the step in the search that `solve` takes, or "engines".
    cases
        Folder in which a contradiction is kept.
    """
    name = f"{seed}/{number}"
    step = mid_step(name, **(_SMALLER if compared == "engines" else {}))
    ways = {"forms": forms, "engines": engines}[compared](step, random.Random(f"{name}/ways"), effort)
    found = contradiction(step, ways, seen)
    return None if found is None else f"{found.told}; see {_keep(step, found, cases)}"


def _keep(step: MidStep, found: Contradiction, cases: Path) -> Path:
    """Write the case of a contradiction; `optimum` is the least value found, and has to be proved by somebody else."""
    case = {"loads": step.loads, "slots": found.slots, "sizes": step.sizes, "optimum": found.least, "why": found.told}
    cases.mkdir(parents=True, exist_ok=True)
    path = cases / f"{StepProblem.now(step.loads, found.slots, step.sizes).digest[:12]}.json"
    path.write_text(json.dumps(case) + "\n", encoding="utf-8")
    return path


def table(title: str, seen: Counter) -> str:
    """Counts of each class of steps and of each way, as text."""
    classes = sorted(key.removesuffix("|steps") for key in seen if key.endswith("|steps"))
    ways = sorted({key.split("|")[0] for key in seen if "|" in key} - set(classes))
    of_ways = ("answers", "optimal", "guarded")
    cells: list[list[object]] = [["", *COLUMNS]]
    cells += [[row, *(seen[f"{row}|{column}"] for column in COLUMNS)] for row in classes]
    cells.append(["all", *(sum(seen[f"{row}|{column}"] for row in classes) for column in COLUMNS)])
    cells += [[row, *(seen[f"{row}|{name}"] if name in of_ways else "" for name in COLUMNS)] for row in ways]
    widths = [max(len(f"{row[k]}") for row in cells) for k in range(len(cells[0]))]
    lines = [
        "  ".join(
            f"{cell:<{w}}" if k == 0 else f"{cell:>{w}}" for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([title, "", *lines]) + "\n"


def main() -> int:
    """Run as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="how many steps")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--effort", type=int, default=EFFORT, help="units of work of each solve")
    parser.add_argument("--compared", choices=("forms", "engines"), default="forms")
    parser.add_argument("--cases", type=Path, default=CASES, help="folder in which contradictions are kept")
    parser.add_argument("--state", type=Path, help="file that a stopped run goes on from; default in build/")
    parser.add_argument("--log", type=Path, help="file for the counts, written when the run ends or is stopped")
    given = parser.parse_args()
    state = given.state or Path("build") / f"contradictions-{given.compared}-{given.seed}-{given.effort}.json"
    one = partial(trial, seed=given.seed, effort=given.effort, compared=given.compared, cases=given.cases)
    try:
        return run(one, given.steps, state, go_on=True, minutes=given.minutes, jobs=given.jobs)
    except KeyboardInterrupt:
        return 130
    finally:
        done, seen = kept(state)
        title = f"{done} steps, --compared {given.compared} --seed {given.seed} --effort {given.effort}"
        print(f"\n{table(title, seen)}")
        if given.log is not None:
            given.log.write_text(table(title, seen), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
