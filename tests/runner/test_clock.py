"""A wall clock that jumps by hours, back and forth, moves no deadline and no result."""

import itertools
import time

from lbopt import StepProblem, solve
from lbopt.runner import Isolated, Store, Summary, Task, run_tasks


def test_steps_of_the_wall_clock(tmp_path, monkeypatch):
    real, steps = time.time, itertools.cycle((5 * 3600.0, -9 * 3600.0, 40 * 86400.0))
    monkeypatch.setattr(time, "time", lambda: real() + next(steps))
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * time.time()))
    begun = time.monotonic()
    tasks = [Task("runner.jobs:double", {"x": x}, None) for x in range(3)]
    with Store(tmp_path / "store.sqlite") as store:
        assert run_tasks(tasks, store, engine=Isolated(kill_after=60.0, reuse=True)) == Summary(computed=3)
        assert run_tasks(tasks, store) == Summary(skipped=3)
    problem = StepProblem.now([10, 3, 5], [1, 2, 0], [4, 7, 9, 2, 6])
    result = solve(problem, solver="brute-force", time_limit=60)
    assert result.status == "optimal"
    assert 0 <= result.seconds <= time.monotonic() - begun
