"""One conformance test for all engines: the same two calls on the same small problems, against naive enumeration."""

import random

import numpy as np
import pytest
from solvers.small_problems import naive_optimum, random_problem

from lbopt.exceptions import InputError
from lbopt.model import Conditions, StepProblem, check_assignment, objective
from lbopt.solvers import greedy_assignment, verify
from lbopt.solvers.budget import Budget
from lbopt.solvers.engine import REFUSALS, Question
from lbopt.solvers.registry import BACKENDS, ENGINES, OWN_SEARCHES, create, is_available
from lbopt.solvers.result import PROVED_BY, STOP_REASONS, Result

COUNT = 24

#: Requests that outlive the window, requests that end in it, a step in which some wait, and one that admits all.
KINDS = {
    "windows": StepProblem.survives([9, 4, 0], [1, 1, 1], [5, 3, 3, 8, 1], 2),
    "departures": StepProblem.known_ends([9, 4], [1, 1], [5, 3, 8], [1, 3, 2], 2, active=[1, 2]),
    "steps": StepProblem.now([9, 4, 0], [1, 2, 1], [5, 3, 3, 8, 1, 6]),
    "all-admitted": StepProblem.now([9, 4, 0], [2, 2, 2], [5, 3, 3, 8, 1]),
}


def small_problems():
    """Random problems, windows that all requests outlive, and one of each kind that lbopt's searches tell apart."""
    drawn = [random_problem(random.Random(seed), (3, 100)[seed % 2], requests=5) for seed in range(COUNT)]
    return [*drawn, *(_outlived(random.Random(seed)) for seed in range(8)), *KINDS.values()]


def problems_for(name: str):
    """The same, under a condition that nothing breaks where the engine takes no plain problem."""
    if name != "conditions":
        return small_problems()
    return [one.under(Conditions(capacity=[10**6] * one.num_workers)) for one in small_problems()]


def _outlived(rng):
    slots = [rng.randint(0, 2), rng.randint(1, 2)]
    sizes = [rng.randint(1, 30) for _ in range(sum(slots) + rng.randint(0, 2))]
    return StepProblem.survives([rng.randint(0, 40), rng.randint(0, 40)], slots, sizes, rng.randint(1, 3))


def opening(problem: StepProblem, tie: str = "any", hint=None):
    """The question, and what is known before a backend runs."""
    question = Question(problem=problem, tie=tie, hint=hint)
    return question, create("elementary", question).run(question.opening(), Budget(None))


def asked(name: str, problem: StepProblem, tie: str = "any"):
    """What is known after engine `name` answered; None where it refuses."""
    question, known = opening(problem, tie)
    if name in OWN_SEARCHES or name == "elementary":
        known = question.opening()
    engine, budget = create(name, question), Budget(None, seed=3)
    why_not = engine.refusal()
    assert why_not is None or why_not in REFUSALS
    if why_not is not None:
        return None
    assert (engine.name, engine.solver) == (name, ENGINES[name].solver)
    known = engine.run(known, budget)
    if name == "conditions" and known.stop == "refused":  # what that search takes is known once it has read the numbers
        return None
    assert known.stop == "done"
    return known


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_answers_by_the_same_two_calls(name):
    """Right optimum, a bound that never exceeds it, and a word for where it comes from."""
    if name in BACKENDS and not is_available(name):
        pytest.skip(f"{name} is not installed")
    answered = 0
    for problem in problems_for(name):
        known = asked(name, problem)
        if known is None:
            continue
        answered += 1
        optimum = naive_optimum(problem)[0]
        check_assignment(problem, known.best.assignment)
        value, bound = known.told[0], known.bounds[-1]
        assert bound.value <= optimum <= value
        assert bound.proof in (*PROVED_BY, "enumeration", f"claimed:{name}"), "a search's word is checked afterwards"
        assert Result.of(known, 0.0).stop_reason in STOP_REASONS
        if name != "elementary":
            assert known.closed
        if known.evidence is not None:
            assert verify(problem, Result.of(known, 0.0)).bound_established
    assert answered >= 4


@pytest.mark.parametrize("name", ["small", "steps", "windows", "departures", "brute-force"])
def test_lbopts_own_engines_break_ties(name):
    for problem in small_problems()[-16:]:
        known = asked(name, problem, "leximax")
        if known is None:
            continue
        loads = problem.base.copy()
        for i, g in enumerate(known.best.assignment):
            if g >= 0:
                loads[g] += problem.work[i]
        assert known.tie == "leximax"
        assert sorted(loads.ravel().tolist(), reverse=True) == naive_optimum(problem)[1]


def test_each_kind_of_problem_has_its_own_search():
    """The first of lbopt's searches that does not refuse is the one of that kind; only `departures` knows less."""
    for kind, problem in KINDS.items():
        question = Question(problem=problem)
        ready = [name for name in OWN_SEARCHES if create(name, question).refusal() is None]
        assert ready[0] == {"all-admitted": "steps"}.get(kind, kind)
        assert ready[1:] == (["departures"] if kind == "windows" else [])


def test_refusals_are_named():
    nothing = StepProblem.now([3, 1], [0, 0], [5, 5])
    wide = StepProblem.now([0, 10**10], [2, 2], [10**9 + 1, 10**9, 7, 3])
    many = StepProblem.now([0, 50_000, *range(6)], [5] * 8, [7 * i * i for i in range(60)])
    refusals = {name: create(name, Question(problem=nothing)).refusal() for name in ENGINES}
    assert [name for name, why_not in refusals.items() if why_not is None] == ["elementary"]
    assert [name for name, why_not in refusals.items() if why_not == "no window"] == ["windows", "departures"]
    assert {refusals[name] for name in (*BACKENDS, "steps")} == {"no requests"}
    if is_available("highs"):
        assert create("highs", Question(problem=wide)).refusal() == "numbers"
    exhaustion = create("brute-force", Question(problem=many))
    assert exhaustion.refusal() == "leaves"
    with pytest.raises(InputError, match="brute-force accepts"):
        exhaustion.run(opening(many)[1], Budget(None))


@pytest.mark.parametrize("name", ENGINES)
def test_no_engine_answers_worse_than_the_hint(name):
    """A hint that is optimal comes back as good as it was."""
    if name in BACKENDS and not is_available(name):
        pytest.skip(f"{name} is not installed")
    for problem in KINDS.values():
        best = asked("brute-force", problem).best.assignment
        question, known = opening(problem, hint=np.array(best))
        engine = create(name, question)
        if engine.refusal() is None:
            after = engine.run(known, Budget(None))
            assert after.told[0] == objective(problem, best) <= objective(problem, greedy_assignment(problem))


def test_the_registry_is_consistent():
    assert all(entry.name == name for name, entry in ENGINES.items())
    assert set(BACKENDS) == {name for name, entry in ENGINES.items() if entry.solver == name}
    assert {ENGINES[name].solver for name in OWN_SEARCHES} == {"exact"}
