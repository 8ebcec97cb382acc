"""Answers of every solver to small step problems, with their certificates, through `lbopt.solve`."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from frozen.digests import digest_of
from solvers.small_problems import random_problem

import lbopt

SOLVERS = ("exact", "search", "brute-force", "cp-sat", "highs", "pulp")
#: Size of each group of problems: requests, workers, slots, largest number.
GROUPS = {"tiny": (4, 2, 2, 9), "small": (6, 3, 3, 100), "wide": (7, 3, 2, 5000), "own": (14, 5, 4, 3000)}
EACH = 5


@cache
def problems() -> dict[str, Any]:
    """The problems by name; the group `own` is too large for exhaustion."""
    found = {}
    for group, (requests, workers, slots, top) in GROUPS.items():
        rng = random.Random(f"frozen {group}")
        for at in range(EACH):
            problem = random_problem(rng, top, requests=requests, workers=workers, slots=slots)
            while len(problem.work) < requests // 2:
                problem = random_problem(rng, top, requests=requests, workers=workers, slots=slots)
            found[f"{group}-{at}"] = problem
    return found


def cases() -> list[tuple[str, str, str]]:
    """Problem, solver and tie of every answer that is frozen."""
    found = []
    for name in problems():
        for solver in SOLVERS:
            if name.startswith("own") and solver not in ("exact", "search"):
                continue
            found.append((name, solver, "any"))
        found += [(name, "exact", "leximax"), (name, "search", "leximax")]
    return found


def answer(name: str, solver: str, tie: str) -> dict[str, Any]:
    """Solve, and describe the result as it is stored: value and bound openly, all of it as a digest."""
    result = lbopt.solve(problems()[name], solver=solver, time_limit=60.0, tie=tie)
    steady = solver != "pulp"  # which of several optima CBC returns differs from run to run
    written = json.loads(result.to_json(certificate=True))
    written.pop("certificate_left_out", None)  # words, which may be put better
    return {
        "objective": result.objective,
        "bound": result.bound,
        "proof": result.proof,
        "result": digest_of(written) if steady else None,
    }
