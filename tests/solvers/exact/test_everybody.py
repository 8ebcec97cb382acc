"""Decisions that admit everybody: bisection on the heaviest load against plain enumeration."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import StepProblem
from lbopt.instances.families import generate
from lbopt.kernels.search.everybody import FOUND, IMPOSSIBLE, fits_below
from lbopt.model import check_assignment, objective
from lbopt.solvers.exact import search_exactly
from lbopt.solvers.exact.decision import Decision


@st.composite
def roomy_problems(draw):
    """Fleets with a slot for everybody."""
    G = draw(st.integers(1, 3))
    loads = draw(st.lists(st.integers(0, 12), min_size=G, max_size=G))
    slots = draw(st.lists(st.integers(0, 4), min_size=G, max_size=G).filter(any))
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=min(5, sum(slots))))
    return StepProblem.now(loads, slots, sizes)


def settled(problem):
    decision = Decision(problem)
    assert decision.admits_everybody
    return decision.everybody(decision.first_assignment()[0])


@settings(deadline=None)
@given(roomy_problems())
def test_cost_and_bound_are_the_optimum(problem):
    assignment, cost, bound = settled(problem)
    best, _ = naive.brute_force(
        problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit
    )
    check_assignment(problem, assignment)
    assert objective(problem, assignment) == cost == bound == best


@settings(deadline=None)
@given(roomy_problems(), st.integers(0, 40))
def test_the_question_is_answered_rightly(problem, M):
    sizes = np.sort(problem.work[:, 0])[::-1].copy()
    where = np.zeros(sizes.size + 1, dtype=np.int64)
    now, room = problem.base[:, 0].copy(), problem.slots.copy()
    M = max(M, int(now.max()))
    answer = fits_below(M, now, room, sizes, 10**6, where)
    best, _ = naive.brute_force(
        problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit
    )
    least = (best + int(problem.base.sum() + sizes.sum())) // problem.num_workers
    assert answer == (FOUND if least <= M else IMPOSSIBLE)
    if answer == FOUND:
        loads = problem.base[:, 0].copy()
        np.add.at(loads, where[: sizes.size], sizes)
        assert loads.max() <= M
        assert loads.tolist() == now.tolist()
        assert (np.bincount(where[: sizes.size], minlength=room.size) == problem.slots - room).all()


@pytest.mark.jit
def test_a_fleet_that_fills_is_answered_at_once():
    """Empty workers of 72 slots: hopeless for prices, and mostly closed by one large request."""
    trace = generate("burstgpt-like", 64 * 20, seed=4)
    closed = 0
    for first in range(0, len(trace), 64):
        problem = StepProblem.now([0] * 16, [72] * 16, trace.prompt[first : first + 64])
        answer = search_exactly(problem, None, lambda: None)
        assert answer.cost == objective(problem, check_assignment(problem, answer.assignment))
        assert 0 <= answer.bound <= answer.cost
        assert answer.stop == ("done" if answer.bound == answer.cost else "stuck")
        closed += answer.stop == "done"
    assert closed >= 10


@pytest.mark.jit
def test_no_effort_gives_a_first_assignment_and_bound():
    problem = StepProblem.now([900, 700, 400], [1, 2, 1], [310, 260, 150, 120, 80])
    quick, whole = (search_exactly(problem, None, lambda: None, effort=effort) for effort in (0, None))
    assert quick.bound <= whole.bound == whole.cost <= quick.cost
    assert (quick.stop, whole.stop) == ("effort", "done")
