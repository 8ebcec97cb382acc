"""Small problems that are bad for a rule, a bound or a search, found by hill climbing from random starts.

``python -m tools.library.adversarial`` searches and writes `recipes/adversarial.json` of the library. A climb
changes one number at a time and keeps what does not lower the score; after many changes in vain it starts afresh.

Scores, where the optimum comes from the exact search and must be proved:

* a rule ("br-0", "max-min", "largest-first", "greedy"): (its imbalance - optimum) / (G * its maximum load), the share
  of the fleet's work that it loses;
* "elementary-bound", "pattern-bound": (optimum - bound) / (G * maximum load of the optimum);
* "effort": work of the exact search, in its own units (about microseconds).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.files import read_json
from lbopt.model import StepProblem, barrier_total, check_assignment, objective
from lbopt.model.integers import IntArray
from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.policies.observation import Observation
from lbopt.solvers import Result, elementary_bound, greedy_assignment, solve
from lbopt.whole_file import write_file
from tools.library.effort import effort
from tools.library.pattern_bound import pattern_bound

#: Seconds for an optimum; a problem that needs longer has no score. Far above what these sizes usually need, so that
#: machines seldom disagree.
OPTIMUM_SECONDS = 0.3

#: Changes in vain after which a climb starts afresh.
PATIENCE = 200


@dataclass(frozen=True, slots=True)
class Search:
    """One line of the catalogue: what to be bad for, the shape of the problems, the seed, the number of problems tried.

    Free slots are 1 to `most_slots` a worker, and as a rule fewer than requests, never more.
    """

    against: str
    workers: int
    requests: int
    most_slots: int
    largest: int
    seed: int
    trials: int


SEARCHES = (
    Search("br-0", 3, 6, 2, 100, 1, 3000),
    Search("br-0", 4, 10, 2, 1000, 2, 3000),
    Search("br-0", 6, 16, 3, 1000, 3, 3000),
    Search("max-min", 3, 6, 2, 100, 4, 3000),
    Search("max-min", 6, 16, 3, 1000, 5, 3000),
    Search("largest-first", 4, 10, 2, 1000, 12, 3000),
    Search("greedy", 3, 7, 3, 100, 13, 2000),
    Search("greedy", 5, 14, 3, 1000, 14, 2000),
    Search("elementary-bound", 3, 8, 3, 100, 6, 3000),
    Search("elementary-bound", 5, 14, 3, 1000, 7, 3000),
    Search("pattern-bound", 3, 8, 3, 100, 8, 600),
    Search("pattern-bound", 3, 9, 3, 1000, 9, 1000),
    Search("effort", 4, 18, 4, 10_000, 10, 600),
    Search("effort", 6, 24, 4, 10_000, 11, 600),
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A problem's score, and what the opponent reached: a rule its imbalance, a bound its tokens, a search its work."""

    score: float
    reached: int


def score(problem: StepProblem, against: str) -> Scored | None:
    """Return how bad `problem` is for `against`; None where the optimum is not proved in time."""
    if against == "effort":
        work = effort(problem, OPTIMUM_SECONDS)
        return None if work is None else Scored(float(work), work)
    best = solve(problem, "search", time_limit=OPTIMUM_SECONDS)
    if best.objective is None or not best.proved:
        return None
    if against in _BOUNDS:
        reached = _BOUNDS[against](problem)
        return Scored((best.objective - reached) / _barrier(problem, best), reached)
    decided = _decided(problem, against)
    workers = check_assignment(problem, decided, who=f"policy '{against}'")
    reached = objective(problem, workers)
    return Scored((reached - best.objective) / max(1, barrier_total(problem, workers)), reached)


def _decided(problem: StepProblem, rule: str) -> IntArray:
    if rule == "greedy":  # the best of six, with which every search of lbopt begins
        return greedy_assignment(problem)
    policy = make_policy("max-min:scope=pool" if rule == "largest-first" else rule)
    return decide(policy, Observation.of_problem(problem))


_BOUNDS: dict[str, Callable[[StepProblem], int]] = {
    "elementary-bound": elementary_bound,
    "pattern-bound": pattern_bound,
}


def climb(search: Search) -> tuple[StepProblem, Scored]:
    """Return the worst problem found; the same search gives the same problem."""
    rng = np.random.default_rng(search.seed)
    best: tuple[StepProblem, Scored] | None = None
    here: tuple[StepProblem, Scored] | None = None
    in_vain = 0
    for _ in range(search.trials):
        problem = _start(search, rng) if here is None else _changed(here[0], search, rng)
        scored = score(problem, search.against)
        if scored is not None and (here is None or scored.score >= here[1].score):
            in_vain = in_vain + 1 if here is not None and scored.score == here[1].score else 0
            here = problem, scored
        else:
            in_vain += 1
        if here is not None and (best is None or here[1].score > best[1].score):
            best = here
        if in_vain > PATIENCE:
            here, in_vain = None, 0
    assert best is not None, "no problem had an optimum that is proved in time"
    return best


def _start(search: Search, rng: np.random.Generator) -> StepProblem:
    slots = rng.integers(1, search.most_slots + 1, search.workers)
    slots[-1] = min(slots[-1], max(1, search.requests - 1 - int(slots[:-1].sum())))
    return StepProblem.now(
        loads=rng.integers(0, search.largest + 1, search.workers),
        slots=slots,
        sizes=rng.integers(1, search.largest + 1, search.requests),
    )


def _changed(problem: StepProblem, search: Search, rng: np.random.Generator) -> StepProblem:
    """Draw one load or one size afresh, or shift it a little."""
    loads, sizes = problem.base[:, 0].copy(), problem.work[:, 0].copy()
    which = int(rng.integers(0, loads.size + sizes.size))
    numbers, place = (loads, which) if which < loads.size else (sizes, which - loads.size)
    if rng.random() < 0.5:
        numbers[place] = rng.integers(1, search.largest + 1)
    else:
        numbers[place] = np.clip(numbers[place] + rng.integers(-3, 4), 1, search.largest)
    return StepProblem.now(loads=loads, slots=problem.slots, sizes=sizes)


def _barrier(problem: StepProblem, result: Result) -> int:
    assert result.assignment is not None
    return max(1, barrier_total(problem, result.assignment))


def found(search: Search) -> dict[str, Any]:
    """Return the line of the catalogue that a search gives."""
    problem, scored = climb(search)
    return {
        **asdict(search),
        "reached": scored.reached,
        "loads": problem.base[:, 0].tolist(),
        "slots": problem.slots.tolist(),
        "sizes": problem.work[:, 0].tolist(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Search and write; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.library.adversarial", description=__doc__)
    default = Path(__file__).parent / "recipes" / "adversarial.json"
    parser.add_argument("--out", type=Path, default=default, help="file to write (default: the recipes')")
    parser.add_argument("--again", action="store_true", help="also repeat the searches that the file has")
    options = parser.parse_args(arguments)
    before = read_json(options.out) if options.out.is_file() and not options.again else []
    lines = []
    for search in SEARCHES:
        kept = [row for row in before if asdict(search).items() <= row.items()]
        lines.append(json.dumps(kept[0] if kept else found(search)))
        sys.stdout.write(lines[-1] + "\n")
        sys.stdout.flush()
        write_file(options.out, "[\n" + ",\n".join(lines) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
