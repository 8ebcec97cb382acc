"""A solve that is cut short: what it returns is feasible, its bound is true, and it is no worse than cheap placements.

The problems are those of the instance library, of which a best value is known. Nothing here asks how long a solve took,
but that each limit, however small, has an answer.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from cli.terminal import environment

from lbopt import Result, StepProblem, solve, verify
from lbopt.instances import library
from lbopt.model import check_assignment, objective
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.solvers.elementary import elementary_bound, greedy_assignment

pytestmark = pytest.mark.jit

LIMITS = (0.0001, 0.001, 0.005, 0.02, 0.05)

#: Rules of routers, which know nothing of forced requests.
ROUTERS = ("br-0", "max-min", "jsq-load")

#: Entries of every kind that are quick to set up.
FEW = (
    "steady-rich-burstgpt-g16-b72-r512-h0",
    "steady-rich-burstgpt-g4-b72-r16-h0",
    "hard-wide-g4-c8-n40-max1000000000",
    "hard-even-g8-c6-n60-max1000000000-must",
    "hard-step-burstgpt-g64-b72-r512",
    "partition-n100-g10-max1000000",
    "cold-over-burstgpt-g4-b24-n200-h0",
    "cold-exact-burstgpt-g8-b72-n576-h0",
    "tiny-known-ends",
)

#: A problem that the search does not finish within a minute, and whose proof is short: it is interrupted in the middle.
ENDLESS = "hard-wide-g16-c8-n150-max10000"


def largest_first(problem: StepProblem) -> np.ndarray:
    """The oldest U requests, forced ones first, largest first to the least loaded worker with a free slot."""
    order = sorted(range(problem.num_requests), key=lambda i: (not problem.must_admit[i], i))[: problem.num_admitted]
    workers = np.full(problem.num_requests, -1, dtype=np.int64)
    loads, free = problem.base[:, 0].tolist(), problem.slots.tolist()
    sizes = problem.work[:, 0].tolist()
    for i in sorted(order, key=lambda i: (-sizes[i], i)):
        g = min((g for g in range(len(free)) if free[g]), key=lambda g: (loads[g], g))
        workers[i], loads[g], free[g] = g, loads[g] + sizes[i], free[g] - 1
    return workers


def cheap_placements(problem: StepProblem) -> dict[str, int]:
    """Values of placements that anybody makes in a moment: rules that break `must_admit` are left out."""
    placed = {"greedy": greedy_assignment(problem), "largest first": largest_first(problem)}
    if problem.horizon == 0:
        observation = Observation.of_problem(problem)
        for name in ROUTERS:
            placed[name] = decide(make_policy(name), observation)
    values = {}
    for name, workers in placed.items():
        admits = workers >= 0
        if admits.sum() == problem.num_admitted and admits[problem.must_admit].all():
            values[name] = objective(problem, check_assignment(problem, workers))
    assert {"greedy", "largest first"} <= values.keys()
    return values


def look(name: str, seen: Counter) -> list[str]:
    """Solve the entry at every limit, without a hint and with one; return what is not as it should be."""
    entry = library.load(name)
    problem, cheap = entry.problem, cheap_placements(entry.problem)
    best = min(entry.best, *cheap.values()) if entry.best is not None else min(cheap.values())
    elementary = elementary_bound(problem)
    hints = {"none": None, "largest first": largest_first(problem)}
    if entry.record.assignment is not None:
        hints["the best known"] = entry.record.assignment
    wrong = []
    for limit in LIMITS:
        for hint_name, hint in hints.items():
            result = solve(problem, "search", time_limit=limit, hint=hint)
            check_assignment(problem, result.assignment)
            value = objective(problem, result.assignment)
            seen["solves"] += 1
            seen[result.stop_reason] += 1
            what = f"{name}, {limit} s, hint {hint_name}: {result.summary()}"
            if result.bound < elementary:
                wrong.append(f"{what}; but elementary reasoning gives {elementary}")
            if result.objective != value:
                wrong.append(f"{what}; but its assignment is worth {value}")
            if result.bound > best:
                wrong.append(f"{what}; but {best} is known")
            if value < entry.bound:
                wrong.append(f"{what}; but the library proves {entry.bound}")
            if hint is not None and value > objective(problem, hint):
                wrong.append(f"{what}; but the hint is worth {objective(problem, hint)}")
            large = problem.horizon > 0 and problem.num_requests * problem.base.size > 500_000
            for rule, other in cheap.items():
                if large and rule == "greedy" and limit < 0.05:
                    continue  # it takes some 20 ms there
                seen[f"worse than {rule}"] += value > other
                if value > other:
                    wrong.append(f"{what}; but {rule} gives {other}")
            if result.status == "optimal" and value > best:
                wrong.append(f"{what}; called optimal, but {best} is known")
    return wrong


@pytest.mark.parametrize("name", FEW)
def test_every_limit_has_an_honest_answer(name):
    assert look(name, Counter()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", library.KINDS)
def test_every_limit_has_an_honest_answer_in_the_whole_library(kind):
    seen: Counter = Counter()
    wrong = [line for name in library.names(kind) for line in look(name, seen)]
    print("\n", kind, dict(seen))
    assert wrong == [], "\n".join(wrong)


# lbopt as it is, in which the search leaves a file in its second slice.
WATCHED = """
from pathlib import Path
from lbopt.solvers.exact.decision import Decision
work, calls = Decision.advance, []
def watched(*arguments):
    calls.append(1)
    if len(calls) == 2:
        Path("there").touch()
    return work(*arguments)
Decision.advance = watched
from lbopt.__main__ import main
main()
"""


def interrupted(folder, *, after: float, within: float = 20):
    """Run `lbopt solve` on the endless problem, press Ctrl-C in its midst; return exit code, output, error."""
    entry = library.load(ENDLESS)
    (folder / "watched.py").write_text(WATCHED)
    (folder / "problem.json").write_text(entry.problem.to_json())
    process = subprocess.Popen(
        [sys.executable, "watched.py", "solve", "problem.json", "--out", "result.json"],
        cwd=folder,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        limit = time.monotonic() + 200  # kernels may have to be compiled first
        while not (folder / "there").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < limit, "the search never began"
            time.sleep(0.01)
        time.sleep(after)
        assert process.poll() is None, "it ended too early for this test"
        os.kill(process.pid, signal.SIGINT)
        shown, said = process.communicate(timeout=within)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return entry, process.returncode, shown, said


@pytest.mark.alone
@pytest.mark.parametrize("after", [0.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_ctrl_c_returns_the_incumbent_with_its_bound(tmp_path, after):
    """No traceback; what is written is a feasible assignment and a bound that is true."""
    entry, code, shown, said = interrupted(tmp_path, after=after)
    assert "Traceback" not in said
    assert code in (0, 130), said
    result = Result.from_dict(json.loads((tmp_path / "result.json").read_text()))
    assert result.stop_reason == "interrupted"
    check_assignment(entry.problem, result.assignment)
    assert result.objective == objective(entry.problem, result.assignment)
    assert result.bound <= min(entry.best, result.objective)
    assert verify(entry.problem, result, exhaust_limit=0).objective_exact
    assert shown.strip()
