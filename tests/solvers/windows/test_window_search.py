"""The search over a window against enumeration and against another solver, and its manners at a limit."""

import random

import pytest
from solvers.windows.window_problems import random_window

from lbopt.model import check_assignment, objective
from lbopt.solvers import recount
from lbopt.solvers.exact.windows import search_window

pytestmark = pytest.mark.jit


def endless():
    return None


def optimum(problem):
    numbers = recount.Numbers(
        problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit.tolist()
    )
    return recount.exhaust(numbers, 10**7)[0]


def answered(problem, best=None):
    """Search, check what every answer has to keep, and return (cost, bound, stop)."""
    answer = search_window(problem, best, endless)
    assert answer.stop in ("done", "stuck")
    cost = best
    if answer.assignment is not None:
        check_assignment(problem, answer.assignment)
        cost = objective(problem, answer.assignment)
        assert best is None or cost < best
    assert answer.bound <= cost
    assert answer.stop != "done" or answer.bound == cost
    return cost, answer.bound, answer.stop


@pytest.mark.parametrize("top", [1, 4, 30, 1000, 10**5])
def test_it_agrees_with_exhaustion(top):
    rng = random.Random(top)
    for _ in range(120):
        problem = random_window(rng, top=top)
        cost, _, stop = answered(problem)
        assert stop == "done"
        assert cost == optimum(problem), problem.to_json()
