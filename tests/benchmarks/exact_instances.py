"""The instances that the exact search is measured on: states of the frozen classes, published and drawn partitions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from lbopt.model import StepProblem
from tests.benchmarks.race.instances import RaceInstance, steady_instances
from tests.benchmarks.race.record import RaceRecord
from tools.steady.state_sets import state_set

__all__ = ["RaceInstance", "RaceRecord", "bmnp", "partitions", "states"]

WORKERS, BITS, SEED = 3, 16, 20261151


def states(name: str, data: Path, count: int, shift: int) -> list[RaceInstance]:
    """Return the first states of a class."""
    return steady_instances(state_set(name), data=str(data), count=count, shift=shift)


def bmnp(data: Path) -> list[RaceInstance]:
    """Return the eight published instances of balanced multiway number partitioning, the smallest first.

    Each is an empty fleet that takes all numbers; the published largest load gives the optimal imbalance.
    """
    found = []
    for path in (data / "bmnp").glob("*.json"):
        one = json.loads(path.read_text(encoding="utf-8"))
        workers, sizes = one["workers"], one["sizes"]
        problem = StepProblem.now([0] * workers, [one["slots"]] * workers, sizes)
        optimum = workers * one["optimum_max_load"] - sum(sizes)
        found.append(RaceInstance(name=f"bmnp {path.stem}", group="bmnp", problem=problem, best=optimum, bound=optimum))
    return sorted(found, key=lambda one: (one.problem.num_requests, one.problem.num_workers))


def partitions(numbers: int, count: int) -> list[RaceInstance]:
    """Return draws of so many numbers of 16 bits to be shared out among three workers with room for all."""
    rng = np.random.default_rng([SEED, numbers])
    problems = [
        StepProblem.now([0] * WORKERS, [numbers] * WORKERS, rng.integers(1, 1 << BITS, numbers)) for _ in range(count)
    ]
    return [
        RaceInstance(name=f"partition {numbers}/{index}", group=f"partition {numbers}", problem=problem)
        for index, problem in enumerate(problems)
    ]
