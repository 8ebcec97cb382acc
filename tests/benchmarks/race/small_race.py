"""Small problems, records made by hand, and a measuring function that answers, fails or dies as its problem says."""

import os
import time

from lbopt.model import StepProblem
from tests.benchmarks.race.instances import RaceInstance
from tests.benchmarks.race.record import RaceRecord

#: What `scripted` does with a problem that has so many workers.
RAISES, DIES, HANGS, ANSWERS = 2, 4, 6, 3


def problem(workers=ANSWERS, first=10):
    """A problem in which neither greedy nor elementary reasoning is enough (with three workers and first = 10)."""
    return StepProblem.now([first, *range(3, 3 + workers - 1)], [1, 2, *[0] * (workers - 2)], [4, 7, 9, 2, 6])


def instance(name, group="small", *, best=None, bound=None, **shape):
    return RaceInstance(name=name, group=group, problem=problem(**shape), best=best, bound=bound)


def record(**changes):
    """A run that was proved in a second."""
    given = {
        "instance": "a",
        "group": "small",
        "digest": "d",
        "solver": "exact",
        "status": "proved",
        "value": 10,
        "bound": 10,
        "barrier": 100,
        "claim": 10,
        "seconds": 1.0,
        "trusted": True,
    }
    return RaceRecord(**(given | changes))


def scripted(*, problem, solver, time_limit, version, seed):
    """Stand in for `measure`: quick, and bad on purpose for some problems."""
    workers = len(problem["base"])
    if workers == RAISES:
        raise ValueError("this problem is refused")
    if workers == DIES:
        os._exit(7)
    if workers == HANGS:
        time.sleep(600)
    late = solver != "exact"
    return {
        "answered_by": solver,
        "status": "claimed" if late else "proved",
        "value": 9 if not late else 9 + seed,
        "bound": 9 if not late else 9 + seed,
        "barrier": 90,
        "claim": 9 if not late else 9 + seed,
        "seconds": 0.5 if late else 0.001,
        "building_seconds": 0.0,
        "stop": "claimed" if late else "proved",
        "native_status": "scripted",
        "trusted": True,
    }
