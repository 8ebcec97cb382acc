"""Every backend against a naive enumeration, on random small problems.

LBOPT_DIFFERENTIAL_COUNT sets how many problems the normal run takes.
"""

import os
import random

import pytest
from lengths import quick_and_long
from solvers.small_problems import naive_optimum, random_problem

from lbopt.model import objective
from lbopt.model.formulation import formulate
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers import BACKENDS, is_available, solve, verify
from lbopt.solvers.backend import Task, load, placement, rounded_up
from lbopt.solvers.exhaustion import exhausted

COUNT = int(os.environ.get("LBOPT_DIFFERENTIAL_COUNT", "96"))
SCALES = (3, 100, 1000, 3000)


def _problem_to_decide(seed: int):
    """The seed's first random problem in which somebody can be admitted."""
    rng = random.Random(seed)
    while True:
        problem = random_problem(rng, SCALES[seed % len(SCALES)])
        if problem.num_admitted:
            return problem


def _compare(seed: int) -> None:
    """Run every backend, also where greedy and elementary reasoning would have closed the problem without one."""
    problem = _problem_to_decide(seed)
    optimum, _ = naive_optimum(problem)
    program = formulate(problem)
    for name in filter(is_available, BACKENDS):
        safe = BACKENDS[name].largest_safe_total
        if name == "highs" and program.total > safe:
            continue  # it is wrong on some of these
        assert safe is None or program.total <= safe
        if name == "brute-force":
            found, stop = exhausted(paced_numbers(problem), None)
            assert stop == "done" and found.rank == (optimum,), (seed, found, stop)
        else:
            answer = load(name).minimise(Task(program=program, seed=seed % 7))
            assert answer.stop == "done", (seed, name, answer)
            assert program.tokens(rounded_up(answer.bound)) == optimum, (seed, name, answer)
            assert objective(problem, placement(program, answer.values)) == optimum, (seed, name, answer)
        result = solve(problem, name, seed=seed % 7)
        assert result.status == "optimal", (seed, result.summary())
        assert result.objective == result.bound == optimum, (seed, result.summary())
        assert verify(problem, result).bound_established


@pytest.mark.parametrize("block", range(12))
def test_all_solvers_and_enumeration_agree(block):
    """On about a hundred problems, of every scale."""
    for seed in range(block, COUNT, 12):
        _compare(seed)


@pytest.mark.slow
def test_all_solvers_and_enumeration_agree_on_two_thousand():
    for seed in range(2000):
        _compare(seed)


@pytest.mark.parametrize("top", [10**6, 10**9, 10**12])
def test_no_large_number_fools_lbopt(top):
    """Beyond the safe scales: never a bound above the optimum, never a worse assignment called optimal."""
    for seed in range(6):
        problem = random_problem(random.Random(seed), top)
        optimum, _ = naive_optimum(problem)
        for name in filter(is_available, BACKENDS):
            result = solve(problem, name, time_limit=0.3)
            assert result.bound <= optimum <= result.objective, (seed, result.summary())
            verify(problem, result)


@pytest.mark.parametrize("seeds", quick_and_long(16, 40))
@pytest.mark.parametrize("name", ["exact", "search", "brute-force"])
def test_leximax_agrees_with_enumeration(name, seeds):
    """The sorted load vector is the least among all optima."""
    for seed in range(seeds):
        problem = random_problem(random.Random(seed), (3, 100)[seed % 2], requests=5)
        result = solve(problem, name, tie="leximax")
        optimum, loads = naive_optimum(problem)
        after = problem.base.copy()
        for i, g in enumerate(result.assignment):
            if g >= 0:
                after[g] += problem.work[i]
        assert result.objective == optimum
        assert result.tie == "leximax"
        assert sorted(after.ravel().tolist(), reverse=True) == loads, seed
        assert "its sorted loads are the least among all optima" in verify(problem, result).established
