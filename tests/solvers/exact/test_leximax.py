"""tie="leximax" of the exact search: against enumeration and other solvers, and what must hold whatever is proved."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solvers.small_problems import naive_optimum, random_problem

from lbopt import StepProblem, solve
from lbopt.solvers.exact import leximax

pytestmark = pytest.mark.jit


def sorted_loads(problem, assignment):
    loads = problem.base.copy()
    for i, g in enumerate(assignment.tolist()):
        if g >= 0:
            loads[g] += problem.work[i]
    return sorted(map(int, loads.ravel()), reverse=True)


def problem_at_h0(seed, requests=6, workers=4, slots=4):
    rng = random.Random(seed)
    while True:
        problem = random_problem(
            rng, rng.choice([1, 6, 60, 1000, 10**6]), requests=requests, workers=workers, slots=slots
        )
        if problem.horizon == 0:
            return problem


def steady(rng, workers, waiting, top=400, most=3):
    """A fleet that runs: loads of several requests, few free slots, more waiting than start."""
    base = rng.integers(0, 6 * top, workers) + 20 * top
    slots = rng.integers(0, most + 1, workers)
    return StepProblem.now(base, slots, rng.integers(1, top, waiting))


@pytest.mark.some(3)
@pytest.mark.parametrize("block", range(6))
def test_it_agrees_with_exhaustion(block):
    for seed in range(100 * block, 100 * block + 100):
        problem = problem_at_h0(seed)
        result = solve(problem, "search", tie="leximax")
        expected = solve(problem, "brute-force", tie="leximax")
        assert (result.objective, result.tie, result.stop_reason) == (expected.objective, "leximax", "proved"), seed
        assert sorted_loads(problem, result.assignment) == sorted_loads(problem, expected.assignment), seed


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_it_agrees_with_naive_enumeration(seed):
    problem = problem_at_h0(seed, requests=5, workers=3, slots=3)
    result = solve(problem, "search", tie="leximax")
    assert (result.objective, sorted_loads(problem, result.assignment)) == naive_optimum(problem)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_optimal_and_no_less_even_than_any_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = steady(rng, 4 + seed, int(rng.integers(5, 120)))
    some = solve(problem, "search")
    even = solve(problem, "search", tie="leximax", time_limit=0.4)
    assert even.objective == some.objective
    assert even.proof == some.proof
    assert sorted_loads(problem, even.assignment) <= sorted_loads(problem, some.assignment)
    again = solve(problem, "search", tie="leximax", time_limit=0.4, hint=even.assignment)
    assert sorted_loads(problem, again.assignment) <= sorted_loads(problem, even.assignment)


@pytest.mark.parametrize("seed", range(25))
def test_both_ways_lead_to_the_same_loads(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    problem = steady(rng, int(rng.integers(3, 12)), int(rng.integers(4, 60)), top=int(rng.choice([20, 400, 5000])))
    ways = []
    for press, lists in ((leximax.press_down, lambda *_: False), (lambda *_: "stuck", leximax.choose)):
        monkeypatch.setattr(leximax, "press_down", press)
        monkeypatch.setattr(leximax, "choose", lists)
        ways.append(solve(problem, "search", tie="leximax", time_limit=5))
        monkeypatch.undo()
    proved = [result for result in ways if result.tie == "leximax"]
    assert proved
    least = sorted_loads(problem, proved[0].assignment)
    assert all(sorted_loads(problem, result.assignment) == least for result in proved)
    assert all(sorted_loads(problem, result.assignment) >= least for result in ways)


def test_tickets_alone_agree_with_exhaustion(monkeypatch):
    monkeypatch.setattr(leximax, "choose", lambda *_: False)
    for seed in range(1000, 1120):
        problem = problem_at_h0(seed)
        result = solve(problem, "search", tie="leximax")
        expected = solve(problem, "brute-force", tie="leximax")
        assert result.tie == "leximax", seed
        assert sorted_loads(problem, result.assignment) == sorted_loads(problem, expected.assignment), seed


def window(seed):
    """A window that all requests outlive, of a few workers; closed ones, equal ones, forced requests."""
    rng = random.Random(seed)
    G, steps, top = rng.randint(1, 4), rng.randint(2, 4), rng.choice([1, 6, 50, 1000])
    slots = [rng.randint(0, 3) for _ in range(G)]
    base = [[rng.randint(0, 3 * top) for _ in range(steps)] for _ in range(G)]
    if G > 1 and rng.random() < 0.4:
        base[1], slots[1] = base[0], slots[0]
    N = max(1, sum(slots) + rng.randint(-2, 3))
    growth = range(steps) if sum(slots) <= N else [0] * steps
    work = [[size + more for more in growth] for size in (rng.randint(0, top) for _ in range(N))]
    must = [False] * N
    for i in rng.sample(range(N), rng.randint(0, min(N, sum(slots)) // 2)):
        must[i] = rng.random() < 0.5
    return StepProblem(base=base, slots=slots, work=work, must_admit=must)


def test_windows_agree_with_exhaustion():
    own = 0
    for seed in range(80):
        problem = window(seed)
        if np.prod([s + 1 for s in problem.slots.tolist()]) * problem.num_requests > 400:
            continue
        result = solve(problem, "search", tie="leximax")
        expected = solve(problem, "brute-force", tie="leximax")
        own += result.solver == "exact"
        assert (result.objective, result.tie) == (expected.objective, "leximax"), seed
        assert sorted_loads(problem, result.assignment) == sorted_loads(problem, expected.assignment), seed
    assert own > 40


def test_a_window_too_large_to_be_exhausted_keeps_its_optimum(monkeypatch):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 300, 100)
    problem = StepProblem.survives(rng.integers(5000, 6000, 20), rng.integers(0, 3, 20), sizes, 4)
    some = solve(problem, "search")
    even = solve(problem, "search", tie="leximax", time_limit=0.5)
    assert even.objective == some.objective
    assert sorted_loads(problem, even.assignment) <= sorted_loads(problem, some.assignment)


def test_workers_of_many_slots_end_at_the_bound():
    rng = np.random.default_rng(5)
    problem = StepProblem.now(np.zeros(16, dtype=int), np.full(16, 40), rng.integers(1, 200, 620))
    result = solve(problem, "search", tie="leximax")
    loads = sorted_loads(problem, result.assignment)
    assert result.tie == "leximax"
    assert loads[0] - loads[-1] <= 1


def test_what_is_not_proved_in_time_is_still_optimal():
    rng = np.random.default_rng(8)
    problem = steady(rng, 60, 200, top=5000)
    some = solve(problem, "search")
    even = solve(problem, "search", tie="leximax", time_limit=0.05)
    assert (even.objective, even.bound) == (some.objective, some.bound)
    assert sorted_loads(problem, even.assignment) <= sorted_loads(problem, some.assignment)
    assert even.tie in ("any", "leximax")


@pytest.mark.parametrize("place", ["least_envelope", "press_down", "choose"])
def test_ctrl_c_leaves_an_optimum(monkeypatch, place):
    rng = np.random.default_rng(11)
    problem = steady(rng, 40, 200, top=5000)
    some = solve(problem, "search")
    solve(problem, "search", tie="leximax", time_limit=0.05)  # loads the kernels, which no key interrupts

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(leximax, place, interrupted)
    if place == "press_down":
        monkeypatch.setattr(leximax, "choose", lambda *_: False)
    result = solve(problem, "search", tie="leximax")
    assert (result.objective, result.tie, result.stop_reason) == (some.objective, "any", "interrupted")


def test_few_workers_of_a_slot_or_two_are_settled_by_tickets_alone(monkeypatch):
    monkeypatch.setattr(leximax, "choose", lambda *_: False)
    problem = StepProblem.now([85320, 83255, 84090, 85665], [1, 1, 1, 1], [1107, 1109, 1135, 1286])
    assert solve(problem, "search", tie="leximax").tie == "leximax"


def test_loads_of_closed_workers_do_not_matter():
    problem = StepProblem.now([50, 7, 3, 90], [0, 2, 2, 0], [5, 9, 30, 2, 8])
    result = solve(problem, "search", tie="leximax")
    assert result.tie == "leximax"
    assert sorted_loads(problem, result.assignment) == naive_optimum(problem)[1]
