"""Limits of a solve hold in every loop of the search under conditions, and no product there overflows."""

from threading import Event, Timer

import numpy as np
import pytest
from solvers.conditions.compared import rank_of_result
from solvers.conditions.drawn import crowded, recorded

from lbopt import Conditions, StepProblem, solve, verify
from lbopt.solvers.budget import Budget
from lbopt.solvers.conditions import priced_search

#: Work that a search may be over its limit: what is done between two looks.
OVER = 25_000


@pytest.mark.parametrize("name", ["endless_79dafa3f", "endless_original", "limits_ignored", "open_029d62ca"])
def test_large_near_equal_works_are_solved(name):
    """Multipliers times works overflowed: two of these never ended, and no limit was looked at meanwhile."""
    problem, best = recorded(name)
    result = solve(problem, "search", effort=3_000_000)
    assert result.proved and rank_of_result(result) == best
    assert verify(problem, result, exhaust_limit=0).bound_established


def test_an_effort_ends_it_with_a_bound_that_holds():
    problem, (best,) = recorded("limits_ignored")
    for effort in (1, 30, 300):
        answered = priced_search.search_under_conditions(problem, None, Budget(None, effort=effort))
        assert answered.outcome.stop == "effort"
        assert int(answered.goals[-1].search.known.work) < effort + OVER
        outcome = answered.outcome
        assert outcome.bounds[-1].value <= best
        assert outcome.best is None or outcome.best.rank >= (best,)
    result = solve(problem, "search", effort=300)
    assert result.stop_reason == "effort" and result.bound <= best <= result.objective


@pytest.mark.parametrize("number", range(4))
def test_an_effort_holds_where_many_workers_take_many(number):
    rng = np.random.default_rng(number)
    G, N = 64, 400
    conditions = Conditions(capacity=rng.integers(2000, 4000, G), need=rng.integers(1, 500, N), pace=[1, 2] * 32)
    slots = rng.choice([1, 5, 16], G)
    problem = StepProblem.now(rng.integers(0, 5000, G), slots, rng.integers(1, 4000, N)).under(conditions)
    answered = priced_search.search_under_conditions(problem, None, Budget(None, effort=20_000))
    assert answered.outcome.stop == "effort"
    assert int(answered.goals[-1].search.known.work) < 20_000 + OVER


def test_a_cancel_ends_compiled_code_that_is_running(monkeypatch):
    """The slice is without end here; a thread sets the flag that compiled code looks at."""
    monkeypatch.setattr(priced_search, "_SLICE", 1 << 60)
    cancel = Event()
    waiting = Timer(0.05, cancel.set)
    waiting.start()
    result = solve(crowded(38, workers=32, requests=180), "search", cancel=cancel)
    waiting.cancel()
    assert result.stop_reason == "cancelled" and result.bound <= result.objective


def test_loads_beyond_the_range_are_left_to_others():
    """Envelope times workers has to fit 64 bits, also where nearly all of the workers decide nothing."""
    conditions = Conditions(allowed=[[True] + [False] * 4095] * 2)
    problem = StepProblem.now([0] * 4096, [1] + [0] * 4095, [1 << 50, 3]).under(conditions)
    assert priced_search.search_under_conditions(problem, None, Budget(None)) is None
    paused = Conditions(running_worker=[0], running_work=[1 << 50], pause_cost=[1 << 58], admit="free")
    problem = StepProblem.now([1 << 50, 0], [1, 1], [5, 3]).under(paused)
    result = solve(problem, "search")
    assert result.proved and result.objective == (1 << 50) - 5
