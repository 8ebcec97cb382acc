"""The comparison with other solvers finds a planted false claim, names what is missing, and asks a real solver."""

from __future__ import annotations

import sys

import pytest

from lbopt import StepProblem
from tests.benchmarks.todays_best import EXACT, Foreign, State, contradictions, judge, oddities, proved

PROBLEM = StepProblem.now([900, 700, 400], [1, 2, 1], [310, 260, 150, 120, 80])


def a_row(solver: str, value: int, bound: int, **more: object) -> dict[str, object]:
    known = {"class": "c", "state": 0, "digest": "d", "limit": 2.0, "seconds": 0.1, "status": "optimal"}
    return {**known, "solver": solver, "value": value, "bound": bound, "closed": value == bound, **more}


def test_a_bound_above_a_placement_is_a_contradiction() -> None:
    right = [a_row(EXACT, 7, 7), a_row("other", 9, 5)]
    assert not list(contradictions(right))
    for false in ([a_row(EXACT, 7, 7), a_row("other", 9, 9)], [a_row(EXACT, 9, 9), a_row("other", 7, 5)]):
        (line,) = contradictions(false)
        assert line.startswith("CONTRADICTION c state 0 (d)") and "at least 9" in line
        judge(false)
        assert sum(map(proved, false)) == (false[0]["value"] == 7)


def test_a_late_proof_does_not_count_and_is_named() -> None:
    late = a_row("other", 7, 7, seconds=2.2)
    assert not proved(late)
    assert list(oddities([late])) == ["after 2.20 s: other on c state 0: optimal"]


def test_a_missing_interpreter_is_said() -> None:
    assert "no-such-python" in Foreign("SCIP", "scip", 1, "no-such-python").missing


@pytest.mark.parametrize(("solver", "package"), [("highs", "highspy"), ("cp-sat", "ortools")])
def test_a_solver_in_a_process_of_its_own_finds_the_optimum(solver: str, package: str) -> None:
    pytest.importorskip(package)
    state, other = State("c", 0, PROBLEM, 5.0), Foreign(solver, solver, 1, sys.executable)
    try:
        found = state.by_program(other)
    finally:
        other.end()
    exact = state.by_search(PROBLEM)
    assert exact["closed"] and found["closed"]
    assert found["value"] == exact["value"] == 280
