"""lbopt's own search against exhaustion, its proofs against the independent check, and its manners at a limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt import StepProblem, solve, verify
from lbopt.instances.families import generate
from lbopt.model import check_assignment, objective
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import check
from lbopt.solvers.exact import written_proof
from lbopt.solvers.exact.search import search_exactly
from tools.steady import SteadyFleet

pytestmark = pytest.mark.jit


@st.composite
def decisions(draw):
    """H = 0 problems in every regime: fewer requests than slots, as many, more; forced ones; closed workers."""
    largest = draw(st.sampled_from([3, 10, 100, 10**4, 10**6, 10**9, 2**31, 2**53]))
    loads = draw(st.lists(st.integers(0, largest), min_size=1, max_size=4))
    slots = draw(st.lists(st.integers(0, 3), min_size=len(loads), max_size=len(loads)))
    sizes = draw(st.lists(st.integers(0, largest), min_size=0, max_size=8))
    admitted = min(len(sizes), sum(slots))
    forced = draw(st.integers(0, admitted)) if draw(st.booleans()) else 0
    return StepProblem.now(loads, slots, sizes, must_admit=[i < forced for i in range(len(sizes))])


@settings(max_examples=150, deadline=None)
@given(decisions())
def test_it_agrees_with_exhaustion_and_its_proof_is_accepted(problem):
    mine, theirs = solve(problem, "search", time_limit=1), solve(problem, "brute-force")
    assert mine.bound <= theirs.objective <= mine.objective
    if mine.stop_reason == "proved":
        assert mine.objective == theirs.objective
        assert verify(problem, mine).bound_established


@pytest.mark.parametrize("shape", ["rich", "leftover"])
@pytest.mark.parametrize("workers", [4, 16])
def test_steady_states_are_proved_and_the_proofs_hold(workers, shape):
    trace = generate("burstgpt-like", 2_000, seed=3)
    fleet = SteadyFleet(trace, workers=workers, slots=24, pool=128, shape=shape, seed=5)
    for problem in fleet.problems(8, warm_up=300, spacing=20):
        result = solve(problem, "search", time_limit=20)
        assert result.proved
        check_assignment(problem, result.assignment)
        assert objective(problem, result.assignment) == result.objective
        assert verify(problem, result, exhaust_limit=1000).bound_established


def test_equal_calls_give_equal_answers():
    trace = generate("burstgpt-like", 2_000, seed=3)
    fleet = SteadyFleet(trace, workers=16, slots=24, pool=128, shape="rich", seed=6)
    for problem in fleet.problems(4, warm_up=300, spacing=20):
        first, other = solve(problem, "search"), solve(StepProblem.from_json(problem.to_json()), "search")
        assert first.assignment.tolist() == other.assignment.tolist()
        assert (first.objective, first.bound) == (other.objective, other.bound)


def test_it_is_never_worse_than_a_hint_and_stops_in_time():
    rng = np.random.default_rng(1)
    problem = StepProblem.now(rng.integers(0, 10**4, 12), [8] * 12, rng.integers(1, 10**9, 200))
    solve(problem, "search", time_limit=0.01)  # loads or compiles what the others need
    best = solve(problem, "search", time_limit=0.5)
    again = solve(problem, "search", hint=best.assignment, time_limit=0.05)
    assert again.objective <= best.objective
    assert best.bound <= best.objective
    assert best.seconds < 5


def test_a_proof_survives_its_file_and_a_raised_bound_does_not(tmp_path):
    from lbopt import CertificateError, Result

    problem = StepProblem.now([0, 0], [2, 2], [10, 10, 10, 3, 1])
    result = solve(problem, "search")
    assert (result.proof, result.proved, result.solver) == ("certificate", True, "exact")
    path = tmp_path / "r.json"
    path.write_text(result.to_json(certificate=True))
    again = Result.from_json(path)
    assert verify(problem, again, exhaust_limit=0).bound_established
    data = result.to_dict(certificate=True)
    data["bound"] += 1
    data["objective"] += 1
    with pytest.raises(CertificateError):
        verify(problem, Result.from_dict(data))
    other = StepProblem.now([0, 0], [2, 2], [10, 10, 10, 3, 2])
    with pytest.raises(CertificateError, match="is for problem"):
        verify(other, again)


def test_without_its_certificate_a_proof_is_only_a_word():
    from lbopt import Result

    problem = StepProblem.now([0, 0], [2, 2], [10, 10, 10, 3, 1])
    bare = Result.from_json(solve(problem, "search").to_json())
    assert not verify(problem, bare, exhaust_limit=0).bound_established


def test_a_bound_of_zero_needs_no_proof():
    """A search that was cut off at a bound of zero once walked all envelopes to prove that no cost is negative."""
    sizes = [457497, 286954, 379528, 707572, 954281, 710851, 33333, 509025, 30094]
    problem = StepProblem.now([0, 91800], [3, 4], sizes, must_admit=[i in (1, 2, 6) for i in range(9)])
    answer = search_exactly(problem, None, Limits(effort=1))
    assert answer.bound == 0 < answer.cost
    certificate = written_proof(problem, answer)
    assert certificate.body["nodes"] == []
    assert check(problem, certificate) == 0
