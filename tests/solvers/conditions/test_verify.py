"""The verifier under conditions: true results pass, forged ones do not, and certificates are refused."""

import random
from dataclasses import replace

import numpy as np
import pytest
from naive.conditions import decisions, is_feasible, rank_of
from solvers.conditions.compared import rank_of_result
from solvers.conditions.drawn import KINDS, drawn, problem_of
from solvers.stated import stated

from lbopt import CertificateError, Conditions, InfeasibleDecisionError, InputError, Result, StepProblem, solve, verify
from lbopt.solvers import recount
from lbopt.solvers.certificates import Certificate, check
from lbopt.solvers.elementary import elementary_bounds
from lbopt.solvers.engine import Decision
from lbopt.solvers.result import Stage

PLAIN = StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
PROBLEM = PLAIN.under(
    Conditions(
        capacity=[200, 400, 300],
        waiting_cost=[9, 8, 7, 6, 5],
        overdue_first=True,
        running_worker=[0, 1],
        running_work=[[300], [200]],
        pause_cost=[40, 10],
    )
)


@pytest.mark.some(5, but=("pauses", "free", "waiting"))
@pytest.mark.parametrize("kind", KINDS)
def test_the_verifier_counts_as_the_enumeration_does(kind):
    """Its digest, rules, values, bounds and exhaustion agree with those of the package, or of the naive twin."""
    for number in range(60):
        case = drawn(f"recount/{number}", kind)
        problem = problem_of(case)
        p = recount.Numbers.of(problem)
        assert recount.digest(p) == problem.digest
        own = recount.lower_bounds(p)
        assert own == [bound.value for bound in elementary_bounds(problem)]
        least: dict[tuple[int, ...], int] = {}
        for rank, workers, pauses in decisions(case):
            assert recount.broken_rule(p, list(workers)) is None
            goals, cost, _ = recount.values_of(p, list(workers), list(pauses))
            assert (*goals, cost) == rank
            if len(least) < 3:  # what a decision reaches is known to both
                found = elementary_bounds(problem, Decision.of(problem, workers, pauses))
                admitted = sum(g >= 0 for g in workers)
                assert recount.lower_bounds(p, admitted) == [bound.value for bound in found]
            assert all(a <= b for a, b in zip(own, rank, strict=True))
            assert all(a <= b for a, b in zip(recount.lower_bounds(p, sum(g >= 0 for g in workers)), rank, strict=True))
            least[rank[:-1]] = min(cost, least.get(rank[:-1], cost))
        assert {goals: cost for goals, (cost, _) in recount.exhaust(p, 10**7).items()} == least
        stopped = recount.exhaust(p, 0)  # whole where there is nothing to decide
        assert stopped is None or {goals: cost for goals, (cost, _) in stopped.items()} == least
        rng = random.Random(number)
        for _ in range(20):
            workers = [rng.randint(-1, problem.num_workers - 1) for _ in case["work"]]
            assert (recount.broken_rule(p, workers) is None) == is_feasible(case, tuple(workers))


def test_a_true_result_passes():
    result = solve(PROBLEM)
    assert result.proof == "exhaustion" and len(result.stages) == 2
    report = verify(PROBLEM, Result.from_json(result.to_json()))
    assert report.feasible and report.objective_exact and report.bound_established and not report.unverified
    assert any("by exhausting the problem again" in fact for fact in report.established)


def test_the_elementary_bounds_are_enough_where_they_close():
    problem = PLAIN.under(Conditions(admit="free"))
    result = solve(problem, "highs")
    assert result.proof == "elementary-bound" and verify(problem, result, exhaust_limit=0).bound_established


def test_a_claim_beyond_the_verifiers_reach_is_listed():
    result = solve(PROBLEM, "highs")
    report = verify(PROBLEM, result, exhaust_limit=0)
    assert not report.bound_established and len(report.unverified) >= 1
    assert "is the word of highs; elementary reasoning gives" in report.unverified[-1]
    own = verify(PROBLEM, solve(PROBLEM), exhaust_limit=0)
    assert "is the word of lbopt's own exhaustive search" in own.unverified[-1]


TRUE = solve(PROBLEM)
FLIPPED = np.array([not TRUE.paused[0], TRUE.paused[1]])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"assignment": np.array([0, -1, 1, 1, 2])}, "is not feasible: worker 0 gets 310 where 200 are free"),
        ({"assignment": np.array([-1, 2, 1, 1])}, "it has 4 entries for 5 requests"),
        ({"paused": None}, "paused has 0 entries; 2 running requests may pause"),
        ({"paused": FLIPPED}, "objective is"),
        ({"objective": TRUE.objective - 1}, "objective is"),
        ({"bound": TRUE.bound + 1}, "is above the objective"),
        ({"bound": TRUE.bound - 1}, "gap is 0, but it is 1"),
        ({"stages": ()}, r"stages are \[\]; the problem has \['left_waiting', 'overdue'\]"),
        ({"stages": TRUE.stages[::-1]}, "stages are"),
        ({"stages": (replace(TRUE.stages[0], value=0), TRUE.stages[1])}, "left_waiting is 0, but is 1"),
        ({"stages": (replace(TRUE.stages[0], bound=2), TRUE.stages[1])}, "the bound 2 on left_waiting is above"),
        ({"stages": (replace(TRUE.stages[0], bound=0), TRUE.stages[1])}, "status is 'optimal'"),
        ({"stages": (replace(TRUE.stages[0], proof="claimed:highs"), TRUE.stages[1])}, "proof of left_waiting is"),
        ({"tie": "leximax"}, "no result under conditions claims"),
        ({"proof": "elementary-bound"}, "does not follow: elementary reasoning gives"),
        ({"problem_digest": PLAIN.digest}, "the result is for problem"),
        ({"stop_reason": "tired"}, "which is unknown"),
        ({"assignment": None}, "there is no assignment, but"),
    ],
)
def test_a_forged_result_is_rejected(change, says):
    with pytest.raises(CertificateError, match=says):
        verify(PROBLEM, replace(TRUE, **change))


def test_a_worse_decision_with_a_bound_of_its_own_is_rejected():
    """Books that are kept well do not help: exhaustion finds what is better."""
    forged = 0
    for number in range(200):
        case = drawn(f"forged/{number}", KINDS[number % len(KINDS)])
        problem = problem_of(case)
        try:
            true = rank_of_result(solve(problem))
        except InfeasibleDecisionError:
            continue
        for rank, workers, pauses in decisions(case):
            if rank == true:
                continue
            assert rank == rank_of(case, workers, pauses) > true
            stages = tuple(
                Stage(goal=goal, value=value, bound=value, proof="exhaustion")
                for goal, value in zip(problem.conditions.goals, rank, strict=False)
            )
            given = {"bound": rank[-1], "proof": "exhaustion", "stop_reason": "proved", "solver": "exact"}
            result = stated(
                problem, np.array(workers, dtype=np.int64), paused=pauses or None, stages=stages, seconds=0.0, **given
            )
            with pytest.raises(CertificateError, match="found by exhaustion"):
                verify(problem, result)
            forged += 1
            break
    assert forged > 100


def test_an_open_goal_keeps_a_result_from_being_optimal():
    """Objective and bound may meet while a goal before them is open."""
    given = {"bound": TRUE.objective, "proof": "exhaustion", "stop_reason": "time", "solver": "exact", "seconds": 0.0}
    stages = (replace(TRUE.stages[0], bound=0, proof="elementary-bound"), TRUE.stages[1])
    result = stated(PROBLEM, TRUE.assignment, paused=TRUE.paused, stages=stages, **given)
    assert result.gap == 0 and result.status == "feasible" and not result.proved
    assert "left waiting 1 (at least 0)" in result.summary()
    with pytest.raises(CertificateError, match="proof is 'exhaustion', which ends optimal"):
        verify(PROBLEM, result)
    claimed = tuple(replace(stage, proof="claimed:exact") for stage in TRUE.stages)
    result = stated(PROBLEM, TRUE.assignment, paused=TRUE.paused, stages=claimed, **given)
    assert result.status == "optimal" and not result.proved and "claimed by exact" in result.summary()


def test_certificates_do_not_cover_conditions():
    certificate = Certificate(kind="priced-envelopes", problem_digest=PROBLEM.digest, bound=0, body={})
    with pytest.raises(CertificateError, match="a certificate of kind 'priced-envelopes' does not cover conditions"):
        check(PROBLEM, certificate)
    with pytest.raises(CertificateError, match="does not cover conditions"):
        verify(PROBLEM, replace(TRUE, evidence=certificate))


def test_stages_belong_to_conditions():
    result = replace(solve(PLAIN), stages=TRUE.stages)
    with pytest.raises(CertificateError, match="the problem has no conditions"):
        verify(PLAIN, result)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 3}, "has format version 3"),
        ({"stages": {}}, "stages is"),
        ({"stages": [1]}, "a stage is 1; expected an object with goal, value, bound, proof"),
        ({"stages": [{"goal": "overdue", "value": 1, "bound": None, "proof": "exhaustion"}]}, "a stage is"),
        ({"stages": [{"goal": "overdue", "value": True, "bound": 1, "proof": "exhaustion"}]}, "a stage is"),
        ({"paused": [2, 0]}, "paused is"),
        ({"paused": "no"}, "paused is 'no'; expected 0 or 1"),
    ],
)
def test_a_damaged_result_gets_one_sentence(change, says):
    with pytest.raises(InputError, match=says):
        Result.from_dict(TRUE.to_dict() | change)


def test_plain_results_keep_their_format():
    data = solve(PLAIN).to_dict()
    assert data["version"] == 1 and not {"stages", "paused"} & set(data)
    assert TRUE.to_dict()["version"] == 2
