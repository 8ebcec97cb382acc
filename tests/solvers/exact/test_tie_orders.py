"""Tie orders: the same answer for all assignments that differ by equals, and the named one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import StepProblem
from lbopt.exceptions import InputError
from lbopt.model import check_assignment, objective
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact import search_exactly
from lbopt.solvers.exact.tie_orders import canonical

TIES = ("oldest", "newest", "random")


def exchanges(problem, assignment):
    """Every assignment that differs by exchanging requests of one size, or workers of one load and as many slots."""
    loads, slots, sizes = problem.base[:, 0].tolist(), problem.slots.tolist(), problem.work[:, 0].tolist()
    kinds = list(zip(loads, slots, strict=True))
    found = {tuple(assignment.tolist())}
    edge = list(found)
    while edge:
        now = edge.pop()
        nexts = []
        for i, j in itertools.combinations(range(len(now)), 2):
            if sizes[i] == sizes[j]:
                other = list(now)
                other[i], other[j] = now[j], now[i]
                nexts.append(other)
        for g, h in itertools.combinations(range(len(kinds)), 2):
            if kinds[g] == kinds[h]:
                nexts.append([h if w == g else g if w == h else w for w in now])
        for other in map(tuple, nexts):
            forced_wait = any(must and w < 0 for must, w in zip(problem.must_admit.tolist(), other, strict=True))
            if other not in found and not forced_wait:
                found.add(other)
                edge.append(other)
    return found


@st.composite
def assigned_problems(draw):
    G = draw(st.integers(1, 3))
    loads = draw(st.lists(st.integers(0, 2), min_size=G, max_size=G))
    slots = draw(st.lists(st.integers(0, 2), min_size=G, max_size=G))
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    admitted = min(len(sizes), sum(slots))
    must = np.zeros(len(sizes), dtype=bool)
    must[draw(st.permutations(range(len(sizes))))[: draw(st.integers(0, admitted))]] = True
    problem = StepProblem.now(loads, slots, sizes, must)
    places = draw(st.permutations(np.repeat(np.arange(G), slots).tolist()))
    others = draw(st.permutations(np.flatnonzero(~must).tolist()))
    assignment = np.full(len(sizes), -1)
    assignment[[*np.flatnonzero(must), *others][:admitted]] = places[:admitted]
    return problem, check_assignment(problem, assignment)


@settings(deadline=None)
@given(assigned_problems(), st.sampled_from(TIES))
def test_all_that_differ_by_equals_become_one_of_them(case, tie):
    problem, assignment = case
    equals = exchanges(problem, assignment)
    answers = {tuple(canonical(problem, np.array(other), tie, 7).tolist()) for other in equals}
    assert len(answers) == 1
    assert answers <= equals
    assert objective(problem, np.array(answers.pop())) == objective(problem, assignment)


@settings(deadline=None)
@given(assigned_problems())
def test_the_preferred_are_admitted_and_go_to_the_lowest_workers(case):
    """Against the definition: in order of preference, workers ascend within a size and the waiting come last."""
    problem, assignment = case
    sizes, must = problem.work[:, 0], problem.must_admit
    oldest, newest = (canonical(problem, assignment, tie) for tie in ("oldest", "newest"))
    for size in set(sizes.tolist()):
        free = np.flatnonzero((sizes == size) & ~must)
        for answer, ages in ((oldest, free), (newest, free[::-1])):
            workers = answer[ages].tolist()
            admitted = [w for w in workers if w >= 0]
            assert workers == sorted(admitted) + [-1] * (len(workers) - len(admitted))


def test_three_orders_by_hand():
    problem = StepProblem.now([5, 0, 0], [0, 1, 1], [3, 3, 3, 2])
    assignment = np.array([-1, 2, -1, 1])
    assert canonical(problem, assignment, "oldest").tolist() == [1, -1, -1, 2]
    assert canonical(problem, assignment, "newest").tolist() == [-1, -1, 1, 2]
    shuffled = {tuple(canonical(problem, assignment, "random", seed).tolist()) for seed in range(30)}
    assert shuffled == {(1, -1, -1, 2), (-1, 1, -1, 2), (-1, -1, 1, 2)}


@pytest.mark.jit
def test_a_search_answers_in_the_order_asked_for():
    problem = StepProblem.now([0, 0], [1, 1], [4, 4, 4, 4, 9])
    answers = {tie: search_exactly(problem, None, Limits(), tie=tie, seed=3) for tie in TIES}
    assert answers["oldest"].assignment.tolist() == [0, 1, -1, -1, -1]
    assert answers["newest"].assignment.tolist() == [-1, -1, 1, 0, -1]
    assert {answer.cost for answer in answers.values()} == {answer.bound for answer in answers.values()} == {0}
    with pytest.raises(InputError, match="tie order is 'eldest'; expected oldest, newest or random"):
        search_exactly(problem, None, Limits(), tie="eldest")
