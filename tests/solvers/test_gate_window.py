"""Optimal gates against all schedules of small states; the states that solvers are judged on are frozen."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product

import pytest
from lengths import quick_and_long
from solvers.gate_states import COUNT, gate_state

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model.gate_problem import GateProblem, WaitingPrompt
from lbopt.solvers.gate_window import exhaust, fast_bound, solve_gate

TWO = GateProblem(((10, 8), (10, 8)), (4, 4), 3, (WaitingPrompt(0, 2), WaitingPrompt(1, 5, waited=7)), price=1)


def naive_value(problem: GateProblem, schedule: list[tuple[int, ...]]) -> int | None:
    """Return the objective by the words of the problem, request by request; None where the schedule breaks a rule."""
    times = [
        max(own + problem.cost * y for own, y in zip(problem.decode[k], schedule[k], strict=True))
        for k in range(problem.num_steps)
    ]
    left = [prompt.tokens for prompt in problem.prompts]
    waits = [0] * len(left)
    for k, row in enumerate(schedule):
        here = [i for i, prompt in enumerate(problem.prompts) if prompt.released <= k and left[i] > 0]
        for i in here:
            waits[i] += times[k]
        for g, y in enumerate(row):
            for i in here:
                if problem.prompts[i].rank == g:
                    took = min(y, left[i])
                    left[i] -= took
                    y -= took
            if y:
                return None
    aged = [prompt.waited + wait for prompt, wait in zip(problem.prompts, waits, strict=True)]
    if any(left) or (problem.longest is not None and max(aged, default=0) > problem.longest):
        return None
    return problem.per * sum(times) + problem.price * sum(waits)


@pytest.mark.parametrize("states", quick_and_long(8, 100))
def test_answers_are_the_best_of_all_schedules(states: int) -> None:
    solvers = ("cp-sat", "highs") if states < 20 else ("cp-sat", "highs", "pulp")
    for number in range(states):
        problem = gate_state(number, small=True)
        G = len(problem.chunk)
        rows = list(product(*(range(chunk + 1) for chunk in problem.chunk)))
        values = [naive_value(problem, list(plan)) for plan in product(rows, repeat=problem.num_steps)]
        best = min((value for value in values if value is not None), default=None)
        exhausted = exhaust(problem)
        assert (None if exhausted is None else exhausted[0]) == best, f"state {number}"
        for solver in solvers:
            found = solve_gate(problem, solver)
            assert found.value == best, f"state {number}, {solver}"
            assert best is None or found.bound <= best, f"state {number}, {solver}"
            if found.schedule is not None:
                assert naive_value(problem, list(found.schedule)) == found.value
                assert all(len(row) == G for row in found.schedule)
        assert best is None or fast_bound(problem) <= best


def test_by_hand() -> None:
    """Both prompts wait for steps of 10 and more; rank 1 needs two: 1 + 4 tokens make 10 + 20, 4 + 1 make 20 + 11."""
    assert TWO.waits([(2, 4), (0, 1)]) == [20, 31]
    assert TWO.value([(2, 4), (0, 1)]) == 20 + 11 + 20 + 31
    assert TWO.value([(2, 3), (0, 2)]) == 17 + 14 + 17 + 31
    assert TWO.fill([17, 14]) == [[2, 3], [0, 2]]
    for solver in ("brute-force", "cp-sat"):
        found = solve_gate(TWO, solver)
        assert (found.value, found.closed) == (79, True)


@pytest.mark.parametrize(
    ("problem", "schedule", "said"),
    [
        (TWO, [(2, 5), (0, 0)], "rank 1 computes 5 tokens in step 0; expected 0 to 4"),
        (TWO, [(2, 4), (0, 0)], "prompt 1 is not completed in 2 steps"),
        (
            replace(TWO, longest=37),
            [(2, 4), (0, 1)],
            "prompt 1 has waited 38 when it is completed; expected 37 or less",
        ),
    ],
)
def test_broken_rules_are_named(problem: GateProblem, schedule: list[tuple[int, ...]], said: str) -> None:
    with pytest.raises(InfeasibleDecisionError, match=said):
        problem.value(schedule)


def test_wrong_problems_are_refused() -> None:
    with pytest.raises(InputError, match="decode has a row that is not 2 times"):
        replace(TWO, decode=((1, 1), (1,)))
    with pytest.raises(InputError, match="cost, per and every chunk are at least 1"):
        replace(TWO, cost=0)
    with pytest.raises(InputError, match=r"prompt 0 is .*expected a rank below 2"):
        replace(TWO, prompts=(WaitingPrompt(2, 1),))
    with pytest.raises(InputError, match="prompt 1 is released at step 0; expected 1, the release of the one before"):
        replace(TWO, prompts=(WaitingPrompt(0, 1, 1), WaitingPrompt(0, 1, 0)))
    with pytest.raises(InputError, match="vectors of step times; expected at most"):
        solve_gate(gate_state(1), "brute-force")
    with pytest.raises(InputError, match="solver is 'gurobi'"):
        solve_gate(TWO, "gurobi")


def test_an_impossible_limit_has_no_schedule() -> None:
    found = solve_gate(replace(TWO, longest=20))
    assert (found.schedule, found.value) == (None, None)


def test_the_states_are_frozen() -> None:
    said = "\n".join(repr(gate_state(number)) for number in range(COUNT))
    assert hashlib.sha256(said.encode()).hexdigest()[:16] == "6162ebecaf4bddd2"
    assert max(len(gate_state(number).prompts) for number in range(COUNT)) == 16
