"""What the search does not take on for its memory or its numbers is answered all the same, and called what it is."""

import random

import numpy as np
import pytest
from solvers.small_problems import naive_optimum

from lbopt.model import StepProblem
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers import is_available, solve, verify
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.workspace import bytes_needed, fits_memory
from lbopt.solvers.exhaustion import most_leaves
from lbopt.solvers.program_engine import too_wide
from lbopt.solvers.registry import AUTO_LEAVES, LEAF_LIMIT

#: Largest size of a request: sums over the window reach 2**62.
TOP = 2**55

pytestmark = pytest.mark.jit


@pytest.mark.some(but=("0.0",))
@pytest.mark.parametrize("forced", [0.0, 0.3])
def test_a_step_beyond_the_memory_has_a_placement_and_a_bound(forced, monkeypatch):
    """512 workers of 36 free slots, 20,000 requests, and less memory than they take."""
    rng = np.random.default_rng(1)
    loads, sizes = rng.integers(0, 10**6, 512), rng.integers(1, 20_000, 20_000)
    problem = StepProblem.now(loads, [36] * 512, sizes, must_admit=rng.random(20_000) < forced)
    monkeypatch.setattr("lbopt.solvers.exact.workspace.LARGEST", bytes_needed(problem) - 1)
    assert not fits_memory(problem)
    result = solve(problem, time_limit=0.5)
    assert (result.status, result.stop_reason, result.proof) == ("feasible", "memory", "elementary-bound")
    assert result.bound == elementary_bound(problem) > 0
    assert result.barrier_gap < 0.04
    assert verify(problem, result).bound_established


def test_a_hint_is_not_lost_for_lack_of_memory(monkeypatch):
    rng = np.random.default_rng(3)
    for turn in range(20):
        must = rng.random(20) < 0.2
        problem = StepProblem.now(rng.integers(0, 1000, 4), [2] * 4, rng.integers(1, 200, 20), must_admit=must)
        best = solve(problem, "search")
        with monkeypatch.context() as patched:
            patched.setattr("lbopt.solvers.exact.workspace.LARGEST", 0)
            alone = solve(problem, "search", tie=("any", "leximax")[turn % 2])
            again = solve(problem, "search", hint=best.assignment)
        assert best.objective == again.objective <= alone.objective
        assert alone.stop_reason == "memory" or alone.status == "optimal"
        assert again.stop_reason == "memory" or again.bound == elementary_bound(problem)
        assert verify(problem, alone).bound_established
        assert verify(problem, again).bound_established


def tiny(seed: int) -> StepProblem:
    """Seven requests on five workers, and sizes beyond every solver's range."""
    rng = random.Random(seed)

    def some(count):
        return [rng.randint(TOP // 2, TOP) for _ in range(count)]

    slots, ends = [rng.randint(1, 2) for _ in range(5)], [rng.randint(1, 3) for _ in range(7)]
    return (
        StepProblem.survives(some(5), slots, some(7), 2, growth=3),
        StepProblem.known_ends(some(5), slots, some(7), ends, 2),
        StepProblem(base=[some(2) for _ in range(5)], slots=slots, work=[some(2) for _ in range(7)]),
    )[seed % 3]


@pytest.mark.more
@pytest.mark.parametrize("solver", ["exact", "search", "auto"])
def test_seven_requests_of_any_size_are_decided(solver):
    for seed in range(3):
        problem = tiny(seed)
        for tie in ("any", "leximax"):
            result = solve(problem, solver, tie=tie)
            assert (result.status, result.proof) == ("optimal", "exhaustion")
            assert result.solver == "brute-force" or (solver == "exact" and result.solver == "exact")
            assert result.tie == tie
            assert verify(problem, result).bound_established


def test_they_are_decided_rightly():
    for seed in range(2):
        problem = tiny(seed)
        optimum, loads = naive_optimum(problem)
        result = solve(problem, tie="leximax")
        assert result.objective == optimum
        assert sorted(result.loads.ravel().tolist(), reverse=True) == loads


def test_what_takes_longer_to_exhaust_hears_the_clock():
    rng = random.Random(1)
    work = [[rng.randint(0, 2**50) for _ in range(5)] for _ in range(13)]
    problem = StepProblem(base=np.zeros((4, 5), dtype=np.int64), slots=[1, 2, 3, 3], work=work)
    assert AUTO_LEAVES < most_leaves(paced_numbers(problem)) <= LEAF_LIMIT
    result = solve(problem, time_limit=0.02)
    assert (result.stop_reason, result.solver) in (("time", "brute-force"), ("time", "exact"))
    assert verify(problem, result).bound_established


def test_numbers_in_a_solvers_range_still_go_to_the_solver():
    if not is_available("cp-sat"):
        pytest.skip("CP-SAT is not installed")
    rng = random.Random(2)
    work = [[rng.randint(0, 1000) for _ in range(3)] for _ in range(9)]
    problem = StepProblem(base=np.zeros((6, 3), dtype=np.int64), slots=[2] * 6, work=work)
    assert solve(problem, "auto").solver in ("cp-sat", "highs")


@pytest.mark.more
def test_a_program_beyond_the_memory_is_not_written_down():
    """Numbers beyond the window search, and a program of 25 million coefficients."""
    rng = np.random.default_rng(5)
    work = rng.integers(0, 2**34, (8_000, 3))
    problem = StepProblem(rng.integers(0, 2**36, (800, 3)), [2] * 800, work)
    assert too_wide(problem)
    assert not too_wide(StepProblem(problem.base, problem.slots, work[np.arange(8_000) % 9]))
    for solver in ("exact", "brute-force"):
        result = solve(problem, solver, tie="leximax")
        assert (result.status, result.stop_reason, result.proof) == ("feasible", "memory", "elementary-bound")
    assert verify(problem, result).bound_established
