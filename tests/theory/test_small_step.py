"""All optima of a small step, against enumeration by loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import theory_lemmas as naive

from lbopt.exceptions import InputError
from lbopt.model.objective import check_assignment, objective
from lbopt.theory.steps.small_step import SmallStep, gaps


@st.composite
def small_steps(draw):
    workers = draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 3)), min_size=1, max_size=4))
    slots = sum(free for _, free in workers)
    requests = draw(st.lists(st.integers(1, 6), min_size=max(1, slots), max_size=slots + 4))
    return SmallStep.of([load for load, _ in workers], [free for _, free in workers], requests)


@given(small_steps())
@settings(max_examples=75)  # the loops take up to some seconds each
def test_the_optima_are_those_of_loops(step):
    best, found = step.optima
    expected, optima = naive.all_optima(step.before, step.free, step.sizes, step.copies)
    assert best == expected
    listed = [
        tuple(
            tuple(size for size, number in zip(step.sizes, worker, strict=True) for _ in range(number))
            for worker in one
        )
        for one in found.tolist()
    ]
    assert len(listed) == len(set(listed))
    assert set(listed) == optima
    loads = [naive.loads_of(step.before, chosen) for chosen in listed]
    assert step.loads(found).tolist() == loads
    assert gaps(step.loads(found)).tolist() == [max(one) - min(one) for one in loads]
    least = min(sorted(one, reverse=True) for one in loads)
    lexi = step.leximax(found)
    assert len(lexi) == sum(sorted(one, reverse=True) == least for one in loads)
    assert sorted(step.loads(lexi)[0].tolist(), reverse=True) == least


@given(small_steps())
@settings(max_examples=50)
def test_a_placement_is_an_assignment_of_the_step_problem(step):
    best, found = step.optima
    problem = step.problem()
    workers = np.array(step.assignment(found[0]), np.int64)
    check_assignment(problem, workers)
    assert objective(problem, workers) == best


def test_what_the_hypotheses_ask():
    assert naive.is_replete(SmallStep((0, 0), (1, 1), (1, 3), (2, 2)))
    assert naive.is_overloaded(SmallStep((0, 0), (1, 1), (1, 3), (2, 2)))
    assert not naive.is_replete(SmallStep((0, 0), (1, 1), (1, 3), (2, 1)))
    assert naive.has_two_replete(SmallStep((0, 0), (1, 1), (1, 3, 4), (2, 1, 2)))
    assert not naive.has_two_replete(SmallStep((0, 0), (1, 1), (1, 3, 4), (2, 2, 1)))
    assert not naive.has_two_replete(SmallStep((0, 0), (1, 1), (3,), (9,)))
    assert not naive.is_overloaded(SmallStep((0, 0), (1, 1), (1, 3), (4, 1)))
    assert not naive.is_replete(SmallStep((0, 0), (1, 1), (3,), (9,)))


def test_a_pool_that_cannot_fill_the_slots_is_refused():
    with pytest.raises(InputError, match="1 requests cannot fill 2 slots"):
        SmallStep.of([0, 0], [1, 1], [3])
