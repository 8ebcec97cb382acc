"""The search over a window against enumeration and against another solver, and its manners at a limit."""

import random

import numpy as np
import pytest
from solvers.windows.window_problems import random_window

from lbopt import StepProblem, solve, verify
from lbopt.instances.families import generate
from lbopt.model import check_assignment, objective
from lbopt.solvers import recount
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact import search_window
from tools.steady import SteadyFleet

pytestmark = pytest.mark.jit


def optimum(problem):
    return recount.exhaust(recount.Numbers.of(problem), 10**7)[()][0]


def steady(workers, count, horizon=20, seed=5):
    trace = generate("burstgpt-like", 2_000, seed=3)
    fleet = SteadyFleet(trace, workers=workers, slots=24, pool=128, shape="rich", seed=seed)
    return list(fleet.problems(count, warm_up=300, spacing=20, horizon=horizon))


@pytest.mark.some(2)
@pytest.mark.parametrize("top", [1, 4, 30, 1000, 10**5])
def test_it_agrees_with_exhaustion(top):
    rng = random.Random(top)
    for _ in range(100):
        problem = random_window(rng, top=top)
        answer = search_window(problem, None, Limits())
        check_assignment(problem, answer.assignment)
        best = optimum(problem)
        assert (answer.stop, answer.bound, objective(problem, answer.assignment)) == ("done", best, best)


def test_fewer_requests_than_slots_where_nothing_grows():
    rng = random.Random(7)
    for _ in range(60):
        full = random_window(rng, top=20)
        few = int(rng.randint(1, full.num_requests))
        work = np.repeat(full.work[:few, :1], full.horizon + 1, axis=1)
        problem = StepProblem(base=full.base, slots=full.slots, work=work)
        answer = search_window(problem, None, Limits())
        assert (answer.stop, objective(problem, answer.assignment)) == ("done", optimum(problem))


def test_it_agrees_with_another_solver_on_middle_problems():
    rng = random.Random(11)
    for _ in range(4):
        problem = random_window(rng, workers=4, requests=20, horizon=5, slots=3, top=300)
        mine, theirs = solve(problem, "search", time_limit=10), solve(problem, "cp-sat", time_limit=10)
        assert mine.proved
        assert theirs.bound <= mine.objective <= theirs.objective


def test_steady_states_are_proved_and_the_proofs_hold():
    for workers in (4, 16):
        for problem in steady(workers, 4):
            result = solve(problem, "search", time_limit=20)
            assert (result.proved, result.solver, result.proof) == (True, "exact", "certificate")
            assert verify(problem, result, exhaust_limit=1000).bound_established


def test_equal_calls_give_equal_answers():
    for problem in steady(8, 3, seed=6):
        first, other = solve(problem, "search"), solve(StepProblem.from_json(problem.to_json()), "search")
        assert first.assignment.tolist() == other.assignment.tolist()
        assert first.certificate().digest == other.certificate().digest


def test_it_is_never_worse_than_a_hint_and_keeps_one_that_is_optimal():
    for problem in steady(8, 3):
        best = solve(problem, "search")
        again = solve(problem, "search", hint=best.assignment)
        assert again.assignment.tolist() == best.assignment.tolist()
        assert again.proved
        waiting = solve(problem, "search", hint=best.assignment, time_limit=1e-9)
        assert waiting.objective == best.objective


def test_an_early_stop_keeps_the_best_assignment_and_a_bound_that_can_be_checked():
    problem = steady(48, 1)[0]
    result = solve(problem, "search", time_limit=1e-9)
    assert result.stop_reason in ("time", "proved")
    assert 0 < result.bound <= result.objective
    assert result.relative_gap < 0.2
    assert verify(problem, result, exhaust_limit=1000).bound_established


def test_the_bound_only_grows_with_time():
    problem = steady(32, 2, seed=8)[1]
    bounds = [solve(problem, "search", time_limit=seconds).bound for seconds in (1e-9, 0.02, 0.2)]
    assert bounds == sorted(bounds)


def test_ctrl_c_keeps_what_is_known():
    problem = steady(48, 1)[0]
    search_window(problem, None, Limits())  # from now on the clock is asked at the very start as well
    asked = []

    def pressed():
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt

    answer = search_window(problem, None, Limits(pressed))
    check_assignment(problem, answer.assignment)
    assert answer.stop in ("interrupted", "done")
    assert answer.bound <= objective(problem, answer.assignment)


@pytest.mark.parametrize(
    "problem",
    [
        StepProblem.known_ends([0, 5], [1, 1], [3, 4, 5], [1, 2, 3], 2),
        StepProblem.survives([0, 5], [2, 2], [3, 4, 5], 2),
        StepProblem.survives([0, 2**40], [1, 1], [3, 4, 5], 2),
        StepProblem.survives([0, 5], [0, 0], [3, 4, 5], 2),
    ],
    ids=["ends inside the window", "an empty slot grows differently", "too large", "nobody can be admitted"],
)
def test_windows_of_another_kind_are_left_to_others(problem):
    assert search_window(problem, None, Limits()).stop == "refused"
    assert solve(problem, "search").status == "optimal"


def test_a_cold_start_ends_in_time_and_its_bound_holds():
    rng = np.random.default_rng(3)
    problem = StepProblem.survives(rng.integers(0, 3000, 8), [24] * 8, rng.integers(1, 3000, 300), 10)
    result = solve(problem, "search", time_limit=1)
    assert result.seconds < 5
    assert result.bound <= result.objective


def test_a_wide_fleet_has_an_answer_after_its_first_node():
    rng = np.random.default_rng(4)
    base = rng.integers(0, 20_000, (450, 3))
    problem = StepProblem(base=base, slots=[1] * 450, work=rng.integers(1, 3000, 500)[:, None] + np.arange(3))
    result = solve(problem, "search", time_limit=1e-9)
    assert result.solver == "exact"
    assert result.barrier_gap < 0.05
