"""Windows in which requests end against enumeration and other solvers, and the search's manners at a limit."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solvers.known_ends.ends_problems import random_ends

from lbopt import StepProblem, solve, verify
from lbopt.instances.families import generate
from lbopt.model import check_assignment, objective
from lbopt.solvers import is_available
from lbopt.solvers.budget import Limits
from lbopt.solvers.elementary import elementary_bound, greedy_assignment
from lbopt.solvers.exact import search_known_ends
from tools.steady import SteadyFleet

pytestmark = pytest.mark.jit

TOPS = (1, 4, 100, 10**4, 10**6, 10**9)


def with_ends(workers, count, *, pool=64, slots=24, horizon=20, seed=5):
    """States of a busy fleet; ends of waiting requests are geometric with a mean of twice the window."""
    trace = generate("burstgpt-like", 2_000, seed=3)
    fleet = SteadyFleet(trace, workers=workers, slots=slots, pool=pool, shape="rich", seed=seed)
    rng = np.random.default_rng(seed)
    for problem in fleet.problems(count, warm_up=200, spacing=20, horizon=horizon):
        ends = rng.geometric(1 / (2 * horizon), problem.num_requests)
        alive = np.arange(horizon + 1) < ends[:, None]
        yield StepProblem(base=problem.base, slots=problem.slots, work=problem.work * alive)


@pytest.mark.some(3)
@pytest.mark.parametrize("top", TOPS)
def test_it_agrees_with_brute_force(top):
    rng = random.Random(top)
    for _ in range(100):
        problem = random_ends(rng, top=top)
        answer = search_known_ends(problem, None, Limits())
        check_assignment(problem, answer.assignment)
        best = solve(problem, "brute-force").objective
        assert (answer.stop, answer.bound, objective(problem, answer.assignment)) == ("done", best, best)


def test_it_agrees_with_brute_force_where_everybody_is_forced_in():
    rng = random.Random(3)
    for _ in range(100):
        problem = random_ends(rng, kind="vectors", requests=5, slots=3)
        if problem.num_requests <= problem.num_free_slots:
            problem = StepProblem(problem.base, problem.slots, problem.work, np.ones(problem.num_requests, dtype=bool))
        answer = search_known_ends(problem, None, Limits())
        assert (answer.stop, answer.cost) == ("done", solve(problem, "brute-force").objective)


@pytest.mark.skipif(not is_available("cp-sat"), reason="CP-SAT is not installed")
@pytest.mark.parametrize("kind", ["ends", "short", "vectors"])
def test_it_agrees_with_another_solver_on_middle_problems(kind):
    rng = random.Random(11)
    for _ in range(4):
        problem = random_ends(rng, kind=kind, workers=4, requests=16, horizon=5, slots=3, top=300)
        mine, theirs = solve(problem, "search"), solve(problem, "cp-sat", time_limit=2)
        assert mine.proved
        assert theirs.bound <= mine.objective <= theirs.objective


def test_the_front_door_uses_it_and_its_proofs_hold():
    rng = random.Random(2)
    for _ in range(60):
        problem = random_ends(rng, top=rng.choice(TOPS))
        result = solve(problem, "search")
        assert (result.solver, result.proved) == ("exact", True)
        assert verify(problem, result, exhaust_limit=10).bound_established


@pytest.mark.parametrize("workers", [4, 8])
def test_steady_states_are_proved_and_the_proofs_hold(workers):
    for problem in with_ends(workers, 4):
        result = solve(problem, "search")
        assert (result.solver, result.proved) == ("exact", True)
        assert result.objective <= objective(problem, greedy_assignment(problem))
        assert verify(problem, result, exhaust_limit=10).bound_established


def test_more_slots_than_requests_with_growth():
    rng = np.random.default_rng(8)
    for _ in range(20):
        problem = StepProblem.survives(rng.integers(0, 500, 4), [2, 3, 0, 2], rng.integers(1, 300, 5), 6)
        result = solve(problem, "search")
        assert (result.solver, result.objective) == ("exact", solve(problem, "brute-force").objective)


def test_equal_calls_give_equal_answers():
    for problem in with_ends(8, 2, seed=6):
        first, other = solve(problem, "search"), solve(StepProblem.from_json(problem.to_json()), "search")
        assert first.assignment.tolist() == other.assignment.tolist()
        assert first.certificate().digest == other.certificate().digest


def test_it_is_never_worse_than_a_hint_and_keeps_one_that_is_optimal():
    for problem in with_ends(8, 2):
        best = solve(problem, "search")
        again = solve(problem, "search", hint=best.assignment)
        assert again.assignment.tolist() == best.assignment.tolist()
        assert again.proved
        assert solve(problem, "search", hint=best.assignment, time_limit=1e-9).objective == best.objective


@pytest.mark.parametrize("workers", [8, 48])
def test_an_early_stop_keeps_the_best_assignment_and_a_bound_that_can_be_checked(workers):
    problem = next(with_ends(workers, 1, pool=256))
    result = solve(problem, "search", time_limit=1e-9)
    assert result.stop_reason in ("time", "proved", "searched")
    assert result.bound <= result.objective <= objective(problem, greedy_assignment(problem))
    assert verify(problem, result, exhaust_limit=10).bound_established


def test_more_time_makes_nothing_worse():
    problem = next(with_ends(24, 1, pool=256, seed=8))
    results = [solve(problem, "search", time_limit=seconds) for seconds in (1e-9, 0.05, 0.4)]
    assert [r.bound for r in results] == sorted(r.bound for r in results)
    assert [r.objective for r in results] == sorted((r.objective for r in results), reverse=True)


def test_a_bound_that_is_not_the_optimum_can_be_checked_too():
    problem = next(with_ends(24, 1, pool=256, seed=8))
    result = solve(problem, "search", time_limit=0.4)
    assert verify(problem, result, exhaust_limit=10).bound_established


@pytest.mark.parametrize("after", [0, 3, 30])
def test_ctrl_c_keeps_what_is_known(after):
    left = iter(range(after))

    def pressed():
        if next(left, None) is None:
            raise KeyboardInterrupt

    problem = next(with_ends(24, 1, pool=256, seed=8))
    answer = search_known_ends(problem, None, Limits(pressed))
    check_assignment(problem, answer.assignment)
    assert answer.stop == "interrupted"
    assert answer.bound <= objective(problem, answer.assignment) == answer.cost


def test_numbers_that_are_too_large_are_left_to_others():
    problem = StepProblem.known_ends([0, 2**55], [1, 1], [3, 4, 5], [1, 2, 3], 2)
    assert search_known_ends(problem, None, Limits()).stop == "refused"
    assert solve(problem, "search").solver != "exact"


def test_a_window_without_free_slots_is_left_to_others():
    problem = StepProblem.known_ends([0, 5], [0, 0], [3, 4, 5], [1, 2, 3], 2)
    assert search_known_ends(problem, None, Limits()).stop == "refused"


problems = st.builds(
    lambda seed, top: random_ends(random.Random(seed), top=top), st.integers(0, 2**32), st.sampled_from(TOPS)
)


@settings(max_examples=60, deadline=None)
@given(problem=problems, seed=st.integers(0, 2**32))
def test_the_optimum_does_not_hear_of_names_shifts_and_scales(problem, seed):
    rng = np.random.default_rng(seed)
    best = search_known_ends(problem, None, Limits()).cost
    workers, requests = rng.permutation(problem.num_workers), rng.permutation(problem.num_requests)
    renamed = StepProblem(
        problem.base[workers], problem.slots[workers], problem.work[requests], problem.must_admit[requests]
    )
    assert search_known_ends(renamed, None, Limits()).cost == best
    shifted = StepProblem(problem.base + rng.integers(0, 50), problem.slots, problem.work, problem.must_admit)
    assert search_known_ends(shifted, None, Limits()).cost == best
    scaled = StepProblem(3 * problem.base, problem.slots, 3 * problem.work, problem.must_admit)
    assert search_known_ends(scaled, None, Limits()).cost == 3 * best
    backwards = StepProblem(problem.base[:, ::-1], problem.slots, problem.work[:, ::-1], problem.must_admit)
    assert search_known_ends(backwards, None, Limits()).cost == best


@settings(max_examples=60, deadline=None)
@given(problem=problems)
def test_a_longer_window_costs_no_less_and_nobody_forced_no_more(problem):
    answer = search_known_ends(problem, None, Limits())
    assert answer.cost >= elementary_bound(problem)
    shorter = StepProblem(problem.base[:, :-1], problem.slots, problem.work[:, :-1], problem.must_admit)
    assert search_known_ends(shorter, None, Limits()).cost <= answer.cost
    free = StepProblem(problem.base, problem.slots, problem.work)
    assert search_known_ends(free, None, Limits()).cost <= answer.cost


def test_a_cold_fleet_with_empty_slots_has_an_answer():
    rng = np.random.default_rng(3)
    problem = StepProblem.survives(rng.integers(0, 3000, 8), [24] * 8, rng.integers(1, 3000, 100), 10)
    result = solve(problem, "search", time_limit=1)
    assert result.solver == "exact"
    assert result.bound <= result.objective <= objective(problem, greedy_assignment(problem))
