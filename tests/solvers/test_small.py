"""Small problems are exhausted without compiled code: the same value, bound and status as by the compiled search."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from solvers.small_problems import naive_optimum, random_problem

from lbopt.model import StepProblem, objective
from lbopt.solvers import solve, verify
from lbopt.solvers.budget import Budget
from lbopt.solvers.engine import Question
from lbopt.solvers.exact.tie_orders import canonical
from lbopt.solvers.registry import create

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_step.json"


def drawn(seed: int) -> StepProblem:
    """Single steps, free windows, windows that all requests outlive, and windows in which requests end."""
    rng = random.Random(seed)
    kind = seed % 4
    G = rng.randint(1, 5)
    loads = [rng.randint(0, 60) for _ in range(G)]
    slots = [rng.randint(0, 3) for _ in range(G)]
    sizes = [rng.randint(1, 30) for _ in range(rng.randint(1, 8))]
    if kind == 2:
        return StepProblem.survives(loads, slots, sizes, rng.randint(1, 3))
    if kind == 3:
        ends = [rng.randint(1, 4) for _ in sizes]
        return StepProblem.known_ends(loads, slots, sizes, ends, rng.randint(1, 3), active=[1] * G)
    return random_problem(rng, rng.choice([3, 9, 100, 5000]), requests=9, workers=5, slots=4)


def is_small(problem: StepProblem) -> bool:
    """Whether the engine takes it."""
    return create("small", Question(problem=problem)).refusal() is None


def same(problem: StepProblem, tie: str) -> None:
    """Compare both, and let `verify` check the small answer."""
    small, searched = solve(problem, tie=tie), solve(problem, "search", tie=tie)
    assert (small.objective, small.bound, small.status, small.stop_reason, small.tie, small.solver) == (
        *(searched.objective, searched.bound, searched.status, searched.stop_reason, searched.tie, searched.solver),
    )
    assert small.proof in ("exhaustion", "elementary-bound")
    report = verify(problem, small)
    assert report.bound_established and report.unverified == ()
    if tie == "leximax":
        assert sorted(small.loads.ravel()) == sorted(searched.loads.ravel())


def compare(seeds: range) -> int:
    """Compare on the small ones of these seeds; return how many there were."""
    count = 0
    for seed in seeds:
        problem = drawn(seed)
        if not is_small(problem):
            continue
        count += 1
        same(problem, "any")
        same(problem, "leximax")
    return count


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize("block", range(4))
def test_exhaustion_and_the_compiled_search_agree(block):
    assert compare(range(100 * block, 100 * block + 100)) > 50


@pytest.mark.slow
def test_they_agree_on_a_few_thousand():
    assert compare(range(1000, 5000)) > 2000


def test_it_is_the_optimum():
    for seed in range(120):
        problem = random_problem(random.Random(seed), 20)
        if is_small(problem):
            assert solve(problem).objective == naive_optimum(problem)[0]


def test_of_equals_the_oldest_go_to_the_lowest_workers():
    for seed in range(300):
        problem = random_problem(random.Random(seed), 5, requests=8)
        if problem.horizon == 0 and is_small(problem):
            placed = solve(problem).assignment
            np.testing.assert_array_equal(placed, canonical(problem, placed))


def test_a_hint_is_kept_where_nothing_is_better():
    for seed in range(100):
        problem = random_problem(random.Random(seed), 50)
        if not is_small(problem):
            continue
        best = solve(problem)
        np.testing.assert_array_equal(solve(problem, hint=best.assignment).assignment, best.assignment)
        first = np.full(problem.num_requests, -1, dtype=np.int64)
        order = np.argsort(~problem.must_admit, kind="stable")[: problem.num_admitted]
        first[order] = np.repeat(np.arange(problem.num_workers), problem.slots)[: problem.num_admitted]
        assert solve(problem, hint=first).objective == best.objective <= objective(problem, first)


def test_what_is_not_small_is_refused_before_it_is_written_down():
    many = StepProblem.now(np.arange(64), np.full(64, 8), np.arange(1, 1001))
    question = Question(problem=many)
    assert create("small", question).refusal() == "leaves"
    assert "program" not in question.__dict__
    assert create("small", Question(problem=StepProblem.now([1], [0], [3]))).refusal() == "no requests"
    assert not is_small(StepProblem.now([9, 4, 0, 3], [4, 4, 4, 4], range(1, 15)))


def test_ctrl_c_leaves_a_placement_and_the_elementary_bound(monkeypatch):
    problem = StepProblem.now([900, 700, 400], [1, 2, 1], [310, 260, 150, 120, 80])

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lbopt.solvers.exhaustion._Search.run", stopped)
    question = Question(problem=problem)
    known = create("small", question).run(question.opening(), Budget(None))
    assert (known.stop, known.bounds[-1].proof) == ("interrupted", "elementary-bound")
    assert solve(problem).stop_reason == "interrupted"


@pytest.mark.alone
def test_the_first_solve_loads_no_compiler():
    """Five requests are answered without Numba, pandas, pictures or a solver package."""
    heavy = ("numba", "scipy", "pandas", "matplotlib", "highspy", "ortools")
    code = f"""
import sys
sys.argv = ["lbopt", "solve", {str(EXAMPLE)!r}]
from lbopt.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("loaded:", *[name for name in {heavy} if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "optimal (proved by exhaustion): imbalance 280" in ended.stdout
    assert ended.stdout.rstrip().endswith("loaded:")
    assert ended.stderr == ""
