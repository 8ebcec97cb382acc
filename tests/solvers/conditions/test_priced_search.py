"""lbopt's own search under conditions, and its certificates: against enumeration, exhaustion and forgery."""

import copy
from collections import Counter
from functools import cache

import numpy as np
import pytest
from naive.conditions import least_rank
from solvers.conditions.compared import rank_of_result
from solvers.conditions.drawn import KINDS, crowded, drawn, problem_of, recorded, single_step

from lbopt import (
    CertificateError,
    Conditions,
    InfeasibleDecisionError,
    InputError,
    Result,
    StepProblem,
    sensitivity,
    solve,
    verify,
)
from lbopt.solvers.budget import Budget
from lbopt.solvers.certificates import Certificate, check
from lbopt.solvers.conditions import priced_search
from lbopt.solvers.registry import is_available
from tools.steady.conditioned import Recipe, read_conditioned_sets


def contradiction(case, seen: Counter) -> str | None:
    """What is wrong with the search's answer to a case of one step, or with its proof."""
    problem = problem_of(case)
    if problem.conditions is None or problem.num_requests == 0:
        return None
    truth = least_rank(case)
    try:
        result = solve(problem, "search")
    except InfeasibleDecisionError as error:
        seen["infeasible"] += 1
        return None if truth is None else f"'{error}', but {truth} is reached"
    if not result.proved or rank_of_result(result) != truth:
        return f"{result}, but the best rank is {truth}"
    if result.solver == "exact":
        seen[result.proof] += 1
        report = verify(problem, Result.from_json(result.to_json(certificate=True)), exhaust_limit=0)
        if not report.bound_established:
            return f"not verified: {report}"
    return None


@pytest.mark.some(4)
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_enumeration_and_its_proof_is_accepted(kind):
    """Each condition and mixtures; the checker may not enumerate anything itself."""
    seen: Counter = Counter()
    for number in range(50):
        case = single_step(drawn(f"priced/{number}", kind))
        wrong = contradiction(case, seen)
        assert wrong is None, (number, wrong, case)
    assert seen["certificate"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_enumeration_on_ten_thousand(kind):
    seen: Counter = Counter()
    for number in range(10_000):
        case = single_step(drawn(f"many/{number}", kind))
        wrong = contradiction(case, seen)
        assert wrong is None, (number, wrong, case)
    assert seen["certificate"] > 2_500


@pytest.mark.more
def test_larger_problems_have_the_ranks_that_exhaustion_finds():
    """Workers of up to three slots, several conditions at once."""
    seen: Counter = Counter()
    for number in range(60):
        problem = crowded(number, workers=3, requests=9)
        try:
            truth = rank_of_result(solve(problem, "brute-force"))
        except InfeasibleDecisionError:
            continue
        result = solve(problem, "search")
        assert result.proved and rank_of_result(result) == truth, number
        assert verify(problem, result, exhaust_limit=0).bound_established
        seen[result.proof] += 1
    assert seen["certificate"] > 20


@pytest.mark.more
@pytest.mark.skipif(not is_available("cp-sat"), reason="cp-sat is not installed")
@pytest.mark.parametrize(
    ("workers", "requests", "numbers"),
    [
        (8, 32, [12, 14, 18]),
        pytest.param(12, 60, [10, 24], marks=pytest.mark.slow),
        pytest.param(16, 50, [4, 12], marks=pytest.mark.slow),
    ],
)
def test_trees_of_placements_have_the_optima_that_cp_sat_claims(workers, requests, numbers):
    """Beyond enumeration: prices do not suffice, and the proofs are accepted."""
    trees = 0
    for number in numbers:
        problem = crowded(number, workers=workers, requests=requests)
        result = solve(problem)
        assert result.proved and result.solver == "exact"
        claimed = solve(problem, "cp-sat", time_limit=60.0)
        if claimed.status == "optimal":
            assert rank_of_result(result) == rank_of_result(claimed), number
        assert claimed.bound <= result.bound <= result.objective <= claimed.objective
        assert verify(problem, result).bound_established
        trees += '"tree"' in result.to_json(certificate=True)
    assert trees > 0


def test_classes_are_drawn_again_as_they_were():
    """Equal problems from equal seeds, and each part of a recipe leaves its trace."""
    sets = read_conditioned_sets()
    assert len(sets) == 22 and {one.states.workers for one in sets.values()} == {16, 64}
    recipe = Recipe(bound=0.5, blocks=64, limited=0.5, slow=0.5, prefixed=0.5, cost=9, pausing=0.5)
    plain = StepProblem.now([900, 800, 700, 600], [1, 2, 1, 1], list(range(20, 80, 5)))
    first, again = (recipe.under(plain, np.random.default_rng(3)) for _ in range(2))
    assert first.digest == again.digest
    given = {name for name, _ in first.conditions.arrays()}
    assert given == {
        *("capacity", "need", "allowed", "credit", "pace", "waiting_cost", "running_worker", "running_work"),
        "pause_cost",
    }


# ---------------------------------------------------------------------------------------------------------------------
# what ends it early, and what it leaves to others


@pytest.mark.parametrize("goals_before", [0, 1, 2])
def test_ctrl_c_ends_the_solve_and_not_one_goal_of_it(monkeypatch, goals_before):
    """The goals that follow were searched for up to the time limit; what is known by then is verified."""
    problem = crowded(3, workers=8, requests=32)
    ages = np.arange(32)
    problem = problem.under(
        Conditions(
            capacity=problem.conditions.capacity, need=problem.conditions.need, waiting_cost=ages, overdue_first=True
        )
    )
    begun, advance = [], priced_search.advance

    def pressed(step, search, *rest):
        begun.append(id(search))
        if len(set(begun)) > goals_before:
            raise KeyboardInterrupt
        return advance(step, search, *rest)

    monkeypatch.setattr(priced_search, "advance", pressed)
    result = solve(problem, "search", effort=3_000_000)
    assert result.stop_reason == "interrupted"
    assert len(set(begun)) == goals_before + 1 and begun.count(begun[-1]) == 1
    assert verify(problem, Result.from_json(result.to_json(certificate=True))).objective_exact


def test_ctrl_c_before_any_decision_is_known_leaves_the_greedy_one(monkeypatch):
    """The search for any decision at all hears it as well, and no other solver is asked then."""

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(priced_search, "advance", pressed)
    result = solve(crowded(3, workers=8, requests=32), "search")
    assert result.stop_reason == "interrupted" and result.assignment is not None and not result.proved


def hard() -> StepProblem:
    """A problem that takes some hundred nodes."""
    return crowded(38, workers=12, requests=60)


def test_a_search_that_is_cut_off_has_a_bound_that_is_proved():
    problem = hard()
    result = solve(problem, "search", effort=4_000)
    assert result.stop_reason == "effort" and result.status == "feasible" and result.bound < result.objective
    report = verify(problem, result)
    assert report.bound_established and result.proof == "search"
    best = solve(problem, "search", time_limit=20.0)
    assert result.bound <= best.bound <= best.objective <= result.objective


def test_a_hint_is_never_made_worse():
    problem = crowded("hint", workers=8, requests=32)
    best = solve(problem)
    again = solve(problem, hint=best.assignment, effort=1)
    assert rank_of_result(again) == rank_of_result(best)


def test_what_it_does_not_take_goes_to_others(monkeypatch):
    """Windows, numbers near the end of 64 bits, more pauses than are listed: as without the search."""
    window = StepProblem.survives([9, 4, 0], [2, 1, 1], [5, 3, 3, 8], 2).under(Conditions(pace=[1, 2, 3]))
    assert solve(window, "search").status == "optimal"
    huge = StepProblem.now([0, 1 << 52], [1, 1], [1 << 51, 1 << 50]).under(Conditions(pace=[1, 2]))
    assert solve(huge, "search").status == "optimal"
    many = StepProblem.now([90, 20], [1, 1], [5, 3, 4]).under(
        Conditions(running_worker=[0] * 11, running_work=[3] * 11, pause_cost=[1] * 11)
    )
    assert solve(many, "search").status == "optimal" and solve(many, "search").solver != "exact"
    monkeypatch.setattr(priced_search, "fits_memory", lambda *given: False)
    assert priced_search.search_under_conditions(crowded(1), None, Budget(1.0)) is None


# ---------------------------------------------------------------------------------------------------------------------
# forged certificates


@cache
def certified() -> tuple[StepProblem, Certificate]:
    """A problem with a goal before the objective, whose proof has a tree; searched when a test first asks."""
    for number in range(100):
        problem = crowded(f"forged {number}", workers=8, requests=32)
        certificate = solve(problem, "search").certificate()
        if (
            certificate is not None
            and certificate.body["reached"]
            and any("tree" in node for node in certificate.body["goals"][-1]["nodes"])
        ):
            return problem, certificate
    raise AssertionError("no proof has a tree")


def forged(change) -> Certificate:
    _, true = certified()
    body = copy.deepcopy(true.body)
    bound = change(body["goals"][-1], body)
    return Certificate(true.problem_digest, true.kind, true.bound if bound is None else bound, body)


def _raise_bound(goal, body):
    goal["bound"] += 1
    return goal["bound"]


def _leave_out_a_node(goal, body):
    del goal["nodes"][0]


def _cut_a_tree(goal, body):
    next(node for node in goal["nodes"] if "tree" in node)["tree"].pop()


def _lengthen_a_tree(goal, body):
    next(node for node in goal["nodes"] if "tree" in node)["tree"].append([0])


def _no_prices(goal, body):
    goal["prices"] = [[] for _ in goal["prices"]]


def _price_below_zero(goal, body):
    goal["prices"][0] = [[0, -5]]


def _another_worker(goal, body):
    branch = next(r for node in goal["nodes"] if "tree" in node for r in node["tree"] if len(r) == 3)
    branch[1] = 99


def _unknown_prices(goal, body):
    next(node for node in goal["nodes"] if "prices" in node)["prices"] = 10**6


def _another_goal(goal, body):
    goal["goal"] = "profit"


def _lighter_weight(goal, body):
    goal["weight"] = 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_raise_bound, "a better decision would have a value of more than|a better decision"),
        (_leave_out_a_node, "no node covers envelope"),
        (_cut_a_tree, "the tree ends after"),
        (_lengthen_a_tree, "the tree is complete after"),
        (_no_prices, "a better decision would have"),
        (_price_below_zero, "only classes that are admitted whole may have a negative one"),
        (_another_worker, "worker 99 can take no more of class"),
        (_unknown_prices, "expected a whole number from 0"),
        (_another_goal, "expected one of left_waiting, objective|expected one of objective"),
        (_lighter_weight, "expected 1, as the costs of waiting are added"),
    ],
)
def test_a_forged_certificate_is_rejected(change, says):
    problem, true = certified()
    assert check(problem, true) == true.bound
    with pytest.raises(CertificateError, match=says):
        check(problem, forged(change))


def test_a_certificate_of_another_problem_or_kind_is_rejected():
    problem, true = certified()
    nothing = Certificate(problem.digest, true.kind, -1, {**true.body, "goals": []})
    with pytest.raises(CertificateError, match="its bound is -1, but it proves"):
        check(problem, nothing)
    other = crowded("another")
    with pytest.raises(CertificateError, match="it is of problem"):
        check(other, true)
    plain = StepProblem.now([5, 0], [1, 1], [4, 3])
    with pytest.raises(CertificateError, match="is of a problem under conditions"):
        check(plain, true)


def test_what_the_goals_before_reach_is_compared():
    """A bound that holds where fewer wait is no bound where more do."""
    problem, true = certified()
    body = copy.deepcopy(true.body)
    result = solve(problem, "search")
    assert body["reached"], "the problem has a goal before the objective"
    body["reached"]["left_waiting"] += 1
    lie = Certificate(true.problem_digest, true.kind, true.bound, body)
    object.__setattr__(result, "evidence", lie)
    with pytest.raises(CertificateError, match=r"are reached; the result reaches|a better decision would have"):
        verify(problem, result)


def test_sensitivity_bounds_the_gain_that_solving_again_finds():
    """One more slot, and ten more units of capacity, on each worker; some gains are above 0."""
    gained = 0
    for number in range(12):
        problem = crowded(f"more {number}", workers=3, requests=9)
        result = solve(problem, "search")
        if result.certificate() is None:
            continue
        for one in sensitivity(problem, result, tokens=10, again=True):
            assert (one.exact >= 0).all() and (one.exact <= one.at_most).all()
            assert (one.at_most <= result.objective).all()
            gained += int((one.exact > 0).sum())
    assert gained > 3
    plain = StepProblem.now([5, 0], [1, 1], [4, 3])
    with pytest.raises(InputError, match="sensitivity needs a result under conditions"):
        sensitivity(plain, solve(plain))


@pytest.mark.parametrize("name", ["sensitivity_plain_63034d7d", "sensitivity_elementary_6c1c5661"])
def test_sensitivity_where_the_changed_problem_is_plain_or_the_objective_needs_no_prices(name):
    """One more slot leaves room for all that are admitted; or nothing can be gained from an objective of 0."""
    problem, best = recorded(name)
    result = solve(problem, "search")
    assert result.proved and rank_of_result(result) == best
    for one in sensitivity(problem, result, again=True):
        assert (one.exact >= 0).all() and (one.exact <= one.at_most).all() and (one.at_most <= best[-1]).all()
    other = problem.under(Conditions(pace=[2] * problem.num_workers))
    with pytest.raises(InputError, match="it is of another one"):
        sensitivity(other, result)


def test_a_long_proof_is_not_written(monkeypatch):
    problem, _ = certified()
    monkeypatch.setattr(priced_search, "_VECTORS", 0)
    result = solve(problem, "search")
    with pytest.raises(CertificateError, match=r"the proof of .* is not written"):
        result.certificate()
    assert "certificate" not in result.to_dict(certificate=True)
