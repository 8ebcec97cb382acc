"""What must hold of any problem under conditions, whatever its optimum is."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive.conditions import decisions
from solvers.conditions.compared import rank_of_result
from solvers.conditions.drawn import KINDS, drawn, problem_of
from solvers.small_problems import naive_optimum, step_problems

from lbopt import Conditions, InfeasibleDecisionError, StepProblem, solve
from lbopt.model.formulation import formulate
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers.exhaustion import _key, exhausted, most_leaves
from lbopt.solvers.program_engine import decoded

WIDE = 10**9


@st.composite
def cases(draw, kinds=KINDS) -> dict[str, Any]:
    """A case of the naive twin."""
    return drawn(draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(kinds)), requests=6)


def best(problem: StepProblem) -> tuple[int, ...] | None:
    """Rank of the best decision; None where there is none."""
    try:
        return rank_of_result(solve(problem))
    except InfeasibleDecisionError:
        return None


@settings(max_examples=150, deadline=None)
@given(step_problems())
def test_conditions_that_bind_nothing_leave_the_plain_optimum(problem):
    """As many as possible are then U, and the least objective is that of the plain problem."""
    wide = problem.under(Conditions(capacity=[WIDE] * problem.num_workers, prefill_budget=[WIDE] * problem.num_workers))
    assert wide.conditions is not None
    waiting = problem.num_requests - problem.num_admitted
    assert best(wide) == (waiting, naive_optimum(problem)[0])


@settings(max_examples=150, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_workers_have_no_order(case, rng):
    """Relabelling the workers changes no goal and no objective."""
    order = list(range(len(case["slots"])))
    rng.shuffle(order)
    moved = dict(case)
    for name in ("base", "slots", "capacity", "prefill_budget", "pace"):
        if name in case:
            moved[name] = [case[name][g] for g in order]
    for name in ("allowed", "credit"):
        if name in case:
            moved[name] = [[row[g] for g in order] for row in case[name]]
    if "running_worker" in case:
        moved["running_worker"] = [order.index(g) for g in case["running_worker"]]
    assert best(problem_of(moved)) == best(problem_of(case))


@settings(max_examples=150, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_requests_have_no_order(case, rng):
    """Nor have the requests."""
    order = list(range(len(case["work"])))
    rng.shuffle(order)
    moved = dict(case)
    for name in ("work", "must", "need", "prompt", "allowed", "credit", "waiting_cost"):
        if name in case:
            moved[name] = [case[name][i] for i in order]
    assert best(problem_of(moved)) == best(problem_of(case))


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(2, 1000))
def test_tokens_have_no_unit(case, factor):
    """With all tokens and costs times a factor, overdue and objective are times that factor, and the number stays."""
    before = best(problem_of(case))
    assume(before is not None)
    larger = {
        name: (np.array(values) * factor).tolist() if name not in KEPT else values for name, values in case.items()
    }
    assert best(problem_of(larger)) == enlarged(case, before, factor)


#: What is no number of tokens.
KEPT = ("slots", "must", "allowed", "pace", "overdue_first", "admit", "running_worker")


def enlarged(case: dict[str, Any], rank: tuple[int, ...], factor: int) -> tuple[int, ...]:
    """The rank with its tokens times a factor; requests that are left waiting are no tokens."""
    names = (*problem_of(case).conditions.goals, "objective")
    return tuple(n if name == "left_waiting" else n * factor for name, n in zip(names, rank, strict=True))


@settings(max_examples=150, deadline=None)
@given(cases(("pace", "mixture")), st.integers(2, 9))
def test_the_unit_of_pace_is_free(case, factor):
    """Paces and costs times a factor make the objective so many times larger."""
    assume(max(case.get("pace", [1])) > 1)
    before = best(problem_of(case))
    assume(before is not None)
    slower = dict(case)
    for name in ("pace", "waiting_cost", "pause_cost"):
        if name in case:
            slower[name] = [factor * value for value in case[name]]
    assert best(problem_of(slower)) == enlarged(case, before, factor)


@settings(max_examples=100, deadline=None)
@given(cases(("capacity", "prefill", "allowed", "mixture")), st.integers(0, 2**32 - 1))
def test_more_room_is_never_worse(case, seed):
    """A worker with more room, or that may take one request more, makes nothing worse."""
    rng, roomier = random.Random(seed), dict(case)
    g = rng.randrange(len(case["slots"]))
    for name in ("capacity", "prefill_budget"):
        if name in case:
            roomier[name] = [limit + (7 if place == g else 0) for place, limit in enumerate(case[name])]
    if case.get("allowed"):
        i = rng.randrange(len(case["allowed"]))
        roomier["allowed"] = [
            [flag or (k, place) == (i, g) for place, flag in enumerate(row)] for k, row in enumerate(case["allowed"])
        ]
    before, after = best(problem_of(case)), best(problem_of(roomier))
    # Without conditions there are no goals, but as many as possible are admitted.
    assert before is None or len(after) < len(before) or after <= before


def test_exhaustion_finds_nothing_where_no_worker_may_take_what_must_be_admitted():
    """Two of three requests have to start, and the workers that may take them have no slot."""
    case = {"base": [[0], [2], [3]], "slots": [0, 0, 2], "work": [[1], [2], [2]], "must": [False] * 3, "admit": 2}
    case |= {"allowed": [[True, False, False], [True, True, False], [True, False, False]]}
    assert exhausted(paced_numbers(problem_of(case)), None) == (None, "done")


@settings(max_examples=150, deadline=None)
@given(cases())
def test_values_of_the_program_are_decisions(case):
    """Encoding the best decision and decoding it gives its rank; it keeps all rows, and its cost is its objective."""
    problem = problem_of(case)
    numbers = paced_numbers(problem)
    found, _ = exhausted(numbers, None)
    assume(found is not None)
    program = formulate(numbers.problem)
    pauses = [] if found.paused is None else found.paused.tolist()
    values = program.encode(found.assignment.tolist(), pauses)
    assert all(low <= value <= high for low, value, high in zip(program.lower, values, program.upper, strict=True))
    for row in program.rows:
        total = sum(c * values[column] for column, c in zip(row.columns, row.coefficients, strict=True))
        assert (row.lower is None or row.lower <= total) and (row.upper is None or total <= row.upper), row.name
    *goals, objective = found.rank
    assert program.tokens(sum(c * value for c, value in zip(program.cost, values, strict=True))) == objective
    for goal, reached in zip(program.goals, goals, strict=True):
        assert goal.offset + sum(c * values[column] for column, c in goal.cost.items()) == reached
    assert decoded(program, values).rank == found.rank
    weighted, weights = program.weighted()
    total = weighted.offset + sum(c * value for c, value in zip(weighted.cost, values, strict=True))
    assert list(weights.values()) == _weights(program.total, [goal.offset for goal in program.goals])
    heavy = sum(weights[goal.name] * value for goal, value in zip(program.goals, goals, strict=True))
    assert total == heavy + objective // program.scale


def _weights(total: int, offsets: list[int]) -> list[int]:
    """What goals weigh, the last first: one unit of a goal is more than all that comes after it can reach."""
    weights, after = [], total
    for most in reversed(offsets):
        weights.append(after + 1)
        after += weights[-1] * most
    return weights


@pytest.mark.more
@settings(max_examples=60, deadline=None)
@given(cases())
def test_no_more_leaves_than_estimated(case):
    """Decisions that differ by more than equal requests and equal workers are at most as many as estimated leaves."""
    numbers = paced_numbers(problem_of(case))
    keys = [_key(numbers, g) for g in range(numbers.problem.num_workers)]
    different = set()
    for _, workers, pauses in decisions(case):
        given = [
            (keys[g], tuple(sum(workers[i] == g for i in kind.members) for kind in numbers.kinds))
            for g in range(len(keys))
        ]
        different.add((tuple(sorted(given)), tuple(pauses)))
    assert len(different) <= most_leaves(numbers)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 2**32 - 1))
def test_a_hint_is_never_made_worse(case, seed):
    """The answer is at least as good as any feasible assignment that is given."""
    problem = problem_of(case)
    truth = best(problem)
    assume(truth is not None)
    found, _ = exhausted(paced_numbers(problem), None)
    for solver in ("exact", "auto"):
        result = solve(problem, solver, hint=found.assignment, seed=seed % 7)
        assert rank_of_result(result) == truth
    assert replace(result, seconds=0.0).problem == problem
