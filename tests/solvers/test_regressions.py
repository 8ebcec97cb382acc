"""Problems on which a bound above the optimum was claimed, by a solver of others or by lbopt itself: never again."""

import json
import logging
import types
from pathlib import Path

import pytest

from lbopt.model import StepProblem
from lbopt.model.formulation import formulate
from lbopt.solvers import is_available, recount, solve, verify
from lbopt.solvers.backend import RawAnswer
from lbopt.solvers.exact import workspace

HERE = Path(__file__).parent / "regressions"
FILES = sorted(HERE.glob("*.json"))

#: Steps of which lbopt's own search gave a wrong optimum; `solvers.reliability.contradictions` adds to them.
STEPS = sorted((HERE / "exact").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_false_claim_is_not_repeated(path, monkeypatch, caplog):
    data = json.loads(path.read_text())
    problem = StepProblem.from_dict(data["problem"])
    optimum, _ = recount.exhaust(recount.Numbers.of(problem), 10**7)[()]
    assert optimum == data["optimum"] < data["claimed_bound"]
    if is_available(data["solver"]):
        result = solve(problem, data["solver"], time_limit=5)
        assert result.bound <= optimum <= result.objective
        verify(problem, result)

    # The claim as it was recorded, whatever the solver says today.
    program = formulate(problem)
    claim = data["claimed_bound"] // program.scale - program.offset
    answer = RawAnswer(values=None, bound=float(claim), stop="done", native_status="Optimal")
    monkeypatch.setattr(
        "lbopt.solvers.program_engine.load", lambda name: types.SimpleNamespace(minimise=lambda task: answer)
    )
    with caplog.at_level(logging.WARNING):
        result = solve(problem, data["solver"])
    assert result.bound <= optimum
    verify(problem, result)


@pytest.mark.some(9, but=("e9f1bddbf2c9",))
@pytest.mark.jit
@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_a_false_optimum_does_not_come_back(path):
    data = json.loads(path.read_text())
    problem = StepProblem.now(data["loads"], data["slots"], data["sizes"])
    for seed in range(5):
        result = solve(problem, seed=seed, effort=2_000_000)
        assert (result.status, result.objective, result.bound) == ("optimal", data["optimum"], data["optimum"])


@pytest.mark.jit
def test_what_was_solved_before_changes_no_effort():
    """Arrays are kept as wide as the widest decision so far, and the work is booked by the decision at hand."""
    read = [json.loads((HERE / "exact" / f"{name}.json").read_text()) for name in ("e9f1bddbf2c9", "8d66996c41a7")]
    narrow, wide = (StepProblem.now(one["loads"], one["slots"], one["sizes"]) for one in read)
    workspace._ours.held = None
    alone = solve(narrow, effort=200_000)
    solve(wide, effort=2_000_000)
    after = solve(narrow, effort=200_000)
    assert alone.stop_reason == after.stop_reason == "effort"
    assert (after.objective, after.bound) == (alone.objective, alone.bound)


def test_there_are_regressions():
    assert FILES
    assert STEPS
