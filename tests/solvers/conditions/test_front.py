"""Who answers a problem under conditions, what ends a solve early, and what becomes of a solver's claims."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from solvers.conditions.compared import rank_of_result
from solvers.conditions.drawn import recorded

from lbopt import Conditions, InputError, Result, StepProblem, solve, verify
from lbopt.model.paced_numbers import paced_numbers
from lbopt.report.solve_tables import result_table
from lbopt.solvers import exhaustion, front, program_engine
from lbopt.solvers.backend import RawAnswer
from lbopt.solvers.budget import Budget
from lbopt.solvers.elementary import greedy_decision
from lbopt.solvers.engine import Bound, Decision, Known, Question
from lbopt.solvers.registry import create, is_available

PLAIN = StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
SMALL = PLAIN.under(Conditions(capacity=[200, 400, 300], waiting_cost=[5, 6, 7, 8, 9]))

#: 5 + 4 on one worker and three 3s on the other, or there is no way; greedy placement puts 5 and 4 apart.
PACKING = StepProblem.now([0, 0], [3, 3], [5, 4, 3, 3, 3]).under(Conditions(capacity=[9, 9], admit=5))

DRAW = np.random.default_rng(5)
LARGE = StepProblem.now(DRAW.integers(0, 90, 6), [3] * 6, DRAW.integers(1, 70, 30)).under(
    Conditions(capacity=DRAW.integers(50, 150, 6), pace=[2, 3, 2, 3, 2, 3])
)


#: Hardly any envelope is a load that a worker can have, so that the search has too many ranges of them.
ZERO = np.random.default_rng(0)
SPARSE = StepProblem.now([0, 0], [5, 5], 10_000 + ZERO.integers(0, 300, 26)).under(
    Conditions(admit="free", waiting_cost=ZERO.integers(0, 3, 26))
)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["open_029d62ca", "open_3db7d41f", "open_5da50a82"])
@pytest.mark.parametrize("solver", ["exact", "search"])
def test_what_the_search_leaves_open_is_exhausted(name, solver):
    problem, best = recorded(name)
    result = solve(problem, solver)
    assert result.proved and rank_of_result(result) == best
    assert verify(problem, Result.from_json(result.to_json())).bound_established


def test_what_the_search_leaves_open_goes_to_a_solver_where_it_is_large(monkeypatch):
    """Not where an effort is to end it, which solvers do not know; no answer is worse than the search's own."""
    own = solve(SPARSE, "search", effort=10_000_000)
    assert own.solver == "exact" and (own.objective, own.bound, own.stop_reason) == (6, 5, "memory")
    if is_available("cp-sat"):
        result = solve(SPARSE, "search", time_limit=60.0)
        assert result.status == "optimal" and result.solver != "exact" and result.objective == 5
    monkeypatch.setattr(front, "is_available", lambda name: False)
    alone = solve(SPARSE, "search")
    assert alone.stop_reason == own.stop_reason and rank_of_result(alone) == rank_of_result(own)


def test_two_outcomes_are_joined_where_both_hold():
    """A bound holds among decisions that reach the same in the goals before: not where the other one reaches more."""
    problem = StepProblem.now([0, 5], [1, 1], [3, 4]).under(Conditions(waiting_cost=[1, 2], overdue_first=True))
    both, one = (Decision(problem, np.array(workers)) for workers in ([0, 1], [0, -1]))
    bounds = tuple(Bound(value, "certificate") for value in (0, 0, 2))
    searched = Known(problem=problem, best=one, bounds=bounds, stop="memory", solver="exact", evidence=lambda: None)
    weaker = tuple(Bound(value, "claimed:x") for value in (0, 0, 1))
    joined = searched.joined(Known(problem=problem, best=one, bounds=weaker, stop="time", solver="x"))
    assert joined.bounds == bounds and joined.evidence is searched.evidence
    joined = searched.joined(Known(problem=problem, best=both, bounds=weaker, stop="interrupted", solver="x"))
    assert joined.bounds[-1] == weaker[-1] and joined.evidence is None and joined.stop == "interrupted"


def test_auto_exhausts_what_is_small_and_asks_a_solver_for_the_rest():
    assert solve(SMALL, "auto").solver == "brute-force" and solve(SMALL).solver == "exact"
    assert solve(LARGE).solver == "exact" == solve(SMALL, "search").solver
    if is_available("highs"):
        found = solve(LARGE, "auto", time_limit=0.5)
        assert found.solver == "highs"
        assert found.assignment is not None and found.bound <= found.objective


def test_too_many_assignments_are_refused():
    with pytest.raises(InputError, match=r"exhaustion would visit up to .* assignments; brute-force accepts 5e\+06"):
        solve(LARGE, "brute-force")
    deep = StepProblem.now([0], [400], [1] * 400).under(Conditions(capacity=[200]))
    assert solve(deep).status == "optimal"  # elementary reasoning closes it
    deep = StepProblem.now([0, 1], [800, 800], range(1, 801)).under(Conditions(capacity=[300_001, 200_022], admit=790))
    with pytest.raises(InputError, match="too many choices after each other"):
        exhaustion.refuse_leaves(paced_numbers(deep))


def test_too_wide_problems_are_refused(monkeypatch):
    monkeypatch.setattr(front, "MOST_LOADS", 29)
    with pytest.raises(InputError, match="5 requests on 3 workers over 1 steps are too many under conditions"):
        solve(SMALL)


def test_time_ends_exhaustion_with_what_is_known():
    slow = StepProblem.now([3, 1, 4], [5] * 3, list(range(40, 51))).under(
        Conditions(capacity=[400] * 3, pace=[3, 4, 5])
    )
    result = solve(slow, "brute-force", time_limit=1e-9)
    assert result.stop_reason == "time" and result.proof == "elementary-bound" and result.status == "feasible"
    assert verify(slow, result).bound_established


def test_ctrl_c_ends_exhaustion_with_what_is_known(monkeypatch):
    true, calls = exhaustion._Search._least_rank, []

    def pressed(self, *given):
        calls.append(given)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return true(self, *given)

    monkeypatch.setattr(exhaustion._Search, "_least_rank", pressed)
    result = solve(SMALL)
    assert result.stop_reason == "interrupted" and result.status == "feasible" and not result.proved
    assert verify(SMALL, result).feasible


@pytest.mark.skipif(not is_available("highs"), reason="highs is not installed")
def test_nothing_may_be_known_when_the_time_is_over():
    """Greedy placement finds no packing, and the solver has no time to find one."""
    assert greedy_decision(paced_numbers(PACKING)) is None
    result = solve(PACKING, "highs", time_limit=1e-9)
    assert (result.status, result.stop_reason, result.assignment) == ("unknown", "time", None)
    assert result.summary().startswith("unknown: no assignment after") and result.objective is None
    assert Result.from_json(result.to_json()) == result
    report = verify(PACKING, result)
    assert not report.feasible
    assert "0 keep waiting" in str(result_table(PACKING, result).caption)
    assert solve(PACKING, "highs").status == "optimal" == solve(PACKING).status


def test_target_cancel_and_callback():
    heard: list = []
    assert solve(SMALL, callback=heard.append, target=10**6).stop_reason == "target"
    assert heard and heard[0].objective >= heard[0].bound
    cancel = threading.Event()
    cancel.set()
    assert solve(SMALL, cancel=cancel).stop_reason == "cancelled"
    assert solve(SMALL, gap=0).status == "optimal"


def test_a_hint_is_kept_and_checked():
    best = solve(SMALL)
    again = solve(SMALL, hint=best.assignment)
    assert again.assignment.tolist() == best.assignment.tolist()
    with pytest.raises(Exception, match="the hint takes 310 of the KV capacity of worker 0, which has 200"):
        solve(SMALL, hint=[0, -1, -1, -1, -1])


# ---------------------------------------------------------------------------------------------------------------------
# claims of a solver

BEST = rank_of_result(solve(SMALL))


def pretend(monkeypatch, **answer):
    """HiGHS answers so to every question."""
    raw = RawAnswer(**{"values": None, "bound": None, "stop": "done", "native_status": "Optimal", **answer})

    class Backend:
        @staticmethod
        def minimise(task):
            return raw

    monkeypatch.setattr(program_engine, "load", lambda name: Backend)


@pytest.mark.skipif(not is_available("highs"), reason="highs is not installed")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"bound": 1e6}, "contradicted"),
        ({"stop": "infeasible", "native_status": "Infeasible"}, "contradicted"),
        ({"stop": "failed", "native_status": "Error"}, "failed"),
        ({"values": [9.0] * 40}, "contradicted"),
        ({"values": [float("nan")] * 40}, "contradicted"),
        ({"stop": "time"}, "time"),
        ({"stop": "interrupted"}, "interrupted"),
        ({"bound": -1e9}, "claimed"),
    ],
)
def test_a_false_claim_is_not_used(monkeypatch, answer, reason):
    pretend(monkeypatch, **answer)
    result = solve(SMALL, "highs")
    assert result.stop_reason == reason and result.status == "feasible"
    assert (*(stage.bound for stage in result.stages), result.bound) <= BEST
    assert verify(SMALL, result).bound_established


@pytest.mark.skipif(not is_available("highs"), reason="highs is not installed")
def test_claims_beyond_the_range_are_not_used(monkeypatch):
    """The same answers with numbers that HiGHS cannot be trusted with, and with which it is not started."""
    for factor, stop in ((10**4, "refused"), (10**9, "refused")):
        large = StepProblem(SMALL.base * factor + 1, SMALL.slots, SMALL.work * factor).under(
            replace(SMALL.conditions, capacity=SMALL.conditions.capacity * factor, need=SMALL.conditions.need * factor)
        )
        large = StepProblem(large.base, large.slots, large.work + np.arange(5)[:, None], conditions=large.conditions)
        result = solve(large, "highs")
        assert (result.stop_reason, result.proof) == (stop, "elementary-bound")


@pytest.mark.skipif(not is_available("cp-sat"), reason="cp-sat is not installed")
def test_a_goal_that_stays_open_leaves_time_for_the_objective(monkeypatch):
    """The first goal ends by time; the objective is still asked for, with what the goal has reached held."""
    asked: list = []
    true = program_engine.load

    def load(name):
        backend = true(name)

        class Backend:
            @staticmethod
            def minimise(task):
                asked.append((task.time_limit, [row.name for row in task.program.rows if row.name.startswith("hold_")]))
                answer = backend.minimise(task)
                return replace(answer, bound=None, stop="time") if len(asked) == 1 else answer

        return Backend

    monkeypatch.setattr(program_engine, "load", load)
    question = Question(problem=SMALL)
    outcome = create("cp-sat", question).run(question.opening(), Budget(60.0))
    assert outcome.stop == "time" and outcome.best.rank == BEST
    assert asked[0][0] < 31 < asked[1][0] and asked[1][1] == ["hold_left_waiting"]


def test_no_program_is_written_down_when_the_time_is_over(monkeypatch):
    """The weight of what is overdue is too large for the own search; the program took 6 s beyond 1 ms."""

    def written(problem, numbers):
        raise AssertionError("a program was written down after the time limit")

    monkeypatch.setattr("lbopt.solvers.engine.formulate", written)
    rng = np.random.default_rng(15)
    problem = StepProblem.now(rng.integers(2**31, 2**32, 64), rng.integers(0, 7, 64), rng.integers(2**26, 2**30, 256))
    conditioned = problem.under(Conditions(waiting_cost=rng.integers(0, 2**30, 256), overdue_first=True))
    result = solve(conditioned, "search", time_limit=0.000001)
    assert (result.status, result.stop_reason) == ("feasible", "time")
    assert verify(conditioned, result).objective_exact
