"""What warms a solver reaches what is to be warmed."""

import time

import pytest

from lbopt.solvers import solve, warm_up
from lbopt.solvers.exact import balance

pytestmark = pytest.mark.jit


def test_the_warming_problem_reaches_the_solver():
    """Neither greedy nor elementary reasoning closes it, else nothing would be warmed."""
    assert solve(warm_up.TINY, solver="highs").solver == "highs"


def test_warming_up_goes_through_the_balancing_search(monkeypatch):
    called = set()

    def watched(name, compiled):
        return lambda *given: (called.add(name), compiled(*given))[1]

    kernels = ("peel", "walk", "swap_down")
    for name in kernels:
        monkeypatch.setattr(balance, name, watched(name, getattr(balance, name)))
    for step in warm_up._steps():
        solve(step, time_limit=2.0)
    assert called == set(kernels)


def test_a_solve_whose_time_went_into_compiling_is_repeated(monkeypatch):
    asked = []

    def slow_at_first(problem, **_):
        asked.append(problem)
        if len(asked) < 3:
            time.sleep(0.03)

    monkeypatch.setattr(warm_up, "solve", slow_at_first)
    monkeypatch.setattr(warm_up, "_LIMIT", 0.01)
    warm_up.warm.__wrapped__("exact", False)
    assert [asked.count(one) for one in warm_up.small_problems("exact", False)] == [3, 1, 1, 1, 1]
