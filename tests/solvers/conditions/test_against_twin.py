"""Every condition, and mixtures of them, against an enumeration that shares no code with lbopt."""

import sys
from collections import Counter
from dataclasses import replace

import pytest
from lengths import quick_and_long
from naive.conditions import least_rank
from solvers.conditions.compared import bound_contradiction, contradiction, program_contradiction, rank_of_result
from solvers.conditions.drawn import KINDS, drawn, problem_of

from lbopt import Conditions, InfeasibleDecisionError, StepProblem, solve
from lbopt.model.formulation import Program, formulate
from lbopt.model.paced_numbers import paced_numbers
from lbopt.solvers.engine import Question
from lbopt.solvers.exhaustion import _Search
from lbopt.solvers.registry import ENGINES, create, is_available

SOLVERS = ("cp-sat", "highs", "pulp")


@pytest.mark.some(3)
@pytest.mark.parametrize("cases", quick_and_long(60, 150))
@pytest.mark.parametrize("kind", KINDS)
def test_exhaustion_finds_what_the_enumeration_finds(kind, cases):
    """From nothing, from the greedy decision, and through `solve` and `verify`; bounds stay below every decision."""
    seen: Counter = Counter()
    for number in range(cases):
        case = drawn(f"test/{number}", kind)
        wrong = program_contradiction(case, "exhaustion", seen)
        wrong = wrong or bound_contradiction(case, seen) or contradiction(case, "exact", seen)
        assert wrong is None, (number, wrong, case)
    assert (
        seen["exhaustion"] >= cases / 5 and seen["elementary-bound"] >= cases / 8 and seen["tight bounds"] >= cases / 4
    )


@pytest.mark.some(6)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_find_what_the_enumeration_finds(kind, solver):
    """Without a decision to start from, and through `solve`."""
    if not is_available(solver):
        pytest.skip(f"{solver} is not installed")
    seen: Counter = Counter()
    for number in range(12):
        case = drawn(f"solvers/{number}", kind)
        wrong = program_contradiction(case, solver, seen) or contradiction(case, solver, seen)
        assert wrong is None, (number, wrong, case)
    assert seen["closed"] > 5 and seen["claimed"] > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_integer_program_without_solution_is_said_to_be_one(solver):
    """Fractions of requests would fit; CBC says so in its log alone."""
    if not is_available(solver):
        pytest.skip(f"{solver} is not installed")
    case = {"base": [[3], [0], [2]], "slots": [5] * 3, "work": [[3], [0], [3], [3], [3]], "must": [False] * 5}
    case |= {"need": [9, 2, 6, 7, 7], "capacity": [6, 12, 13], "admit": 5}
    seen: Counter = Counter()
    assert program_contradiction(case, solver, seen) is None and seen["infeasible"] == 1


def test_larger_problems_agree_between_solvers():
    """Beyond what an enumeration reaches: exhaustion, CP-SAT and HiGHS give the same goals and the same objective."""
    solvers = ["brute-force", *(name for name in ("cp-sat", "highs") if is_available(name))]
    compared = 0
    for number in range(12):
        problem = problem_of(drawn(f"large/{number}", "mixture", requests=8, workers=3))
        if isinstance(outcome := _answer(problem, "brute-force"), str):
            assert {isinstance(_answer(problem, name), str) for name in solvers} == {True}, outcome
            continue
        results = [solve(problem, name) for name in solvers]
        assert len({rank_of_result(result) for result in results}) == 1
        assert {result.status for result in results} == {"optimal"}
        compared += 1
    assert compared > 6


def _answer(problem: StepProblem, solver: str):
    try:
        return solve(problem, solver)
    except InfeasibleDecisionError as error:
        return str(error)


def test_engines_for_plain_problems_refuse_conditions():
    """None of them takes one with conditions, and all of them say so; the others take both."""
    question = Question(problem=StepProblem.now([3, 1], [1, 1], [5, 5]).under(Conditions(pace=[1, 2])))
    window = Question(problem=StepProblem([[3, 1], [1, 1]], [1, 1], [5, 5]).under(Conditions(pace=[1, 2])))
    refused = [name for name in ENGINES for one in (question, window) if create(name, one).refusal() == "conditions"]
    assert refused == ["steps", "windows", "departures"]


# ---------------------------------------------------------------------------------------------------------------------
# the tests above can fail


def _found(kind: str, check, count: int = 60) -> bool:
    return any(check(drawn(f"planted/{number}", kind)) for number in range(count))


def test_a_planted_objective_is_noticed(monkeypatch):
    """One token too much for a pause, or none for waiting."""
    room = sys.modules["lbopt.model.objective"]  # `lbopt.model.objective` is the function
    true = room.costs
    monkeypatch.setattr(room, "costs", lambda *given: true(*given) + 1)
    assert _found("pauses", lambda case: contradiction(case, "exact", Counter()))
    monkeypatch.setattr(room, "overdue", lambda *given: 0)
    assert _found("overdue first", lambda case: contradiction(case, "exact", Counter()))


@pytest.mark.parametrize("kind", ["allowed", "capacity", "prefill", "credit", "pace"])
def test_a_condition_that_is_left_out_is_noticed(monkeypatch, kind):
    """Numbers without one of the conditions lead to another optimum, or to a decision that is not feasible."""
    import solvers.conditions.compared as room

    fields = {"prefill": ("prefill_budget", "prompt"), "capacity": ("capacity", "need")}.get(kind, (kind,))

    def forgetful(problem):
        kept = replace(problem.conditions, **dict.fromkeys(fields)) if problem.conditions else None
        return paced_numbers(problem.under(kept if kept and any(True for _ in kept.arrays()) else _idle(problem)))

    monkeypatch.setattr(room, "paced_numbers", forgetful)
    assert _found(kind, lambda case: program_contradiction(case, "exhaustion", Counter()))


def _idle(problem: StepProblem) -> Conditions:
    """Conditions that change nothing."""
    return Conditions(capacity=[10**6] * problem.num_workers, admit=problem.conditions.admit)


def test_a_planted_pruning_is_noticed(monkeypatch):
    """A bound that is one token too high cuts off the optimum."""
    true = _Search._least_rank

    def too_high(self, p, missing, peak, held, price):
        *goals, cost = true(self, p, missing, peak, held, price)
        return (*goals, cost + (p < len(self.workers)) * 3)

    monkeypatch.setattr(_Search, "_least_rank", too_high)
    for kind in ("waiting", "pauses", "mixture"):
        assert _found(kind, lambda case: program_contradiction(case, "exhaustion", Counter()))


@pytest.mark.skipif(not is_available("cp-sat"), reason="cp-sat is not installed")
@pytest.mark.parametrize(
    ("prefix", "kind"),
    [("holds", "packing"), ("slots", "waiting"), ("admitted", "exactly"), ("peak", "pace"), ("kind", "waiting")],
)
def test_a_planted_program_is_noticed(monkeypatch, prefix, kind):
    """A program that lacks rows of one sort."""

    def formulated(problem, numbers) -> Program:
        program = formulate(problem, numbers)
        return replace(program, rows=tuple(row for row in program.rows if not row.name.startswith(prefix)))

    monkeypatch.setattr("lbopt.solvers.engine.formulate", formulated)
    assert _found(kind, lambda case: program_contradiction(case, "cp-sat", Counter()))


@pytest.mark.parametrize(
    ("condition", "best"),
    [
        ({}, (1, 0)),  # 4 joins 5, 9 goes to the empty worker
        ({"capacity": [3, 9]}, (1, 2)),  # the first worker has room for 2 alone
        ({"prefill_budget": [3, 9]}, (1, 2)),
        ({"capacity": [1, 1], "need": [1, 2, 2]}, (2, 1)),  # 4 alone fits somewhere
        ({"allowed": [[True, True], [True, True], [False, False]]}, (1, 3)),
        ({"credit": [[0, 0], [0, 0], [0, 3]]}, (1, 1)),  # 9 weighs 6 where its prefix is
        ({"pace": [1, 2]}, (1, 1)),  # 5 + 2 = 7 against 2 * 4 = 8
        ({"waiting_cost": [7, 1, 1]}, (1, 1)),
        ({"waiting_cost": [0, 5, 0], "overdue_first": True}, (1, 0, 2)),
        ({"admit": "free"}, (0,)),
        ({"admit": 1}, (1,)),
        ({"admit": 0}, (5,)),
        ({"admit": 0, "running_worker": [0], "running_work": [[5]], "pause_cost": [1]}, (1,)),
        ({"admit": 3}, None),
    ],
)
def test_the_enumeration_is_right_about_what_can_be_counted_by_hand(condition, best):
    case = {"base": [[5], [0]], "slots": [1, 1], "work": [[4], [2], [9]], "must": [False] * 3, **condition}
    assert least_rank(case) == best
