"""One run: all solvers agree, building is not timed, and false claims are seen as such."""

import time

import pytest

from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.solvers.backend import RawAnswer
from tests.benchmarks.race import measure as module
from tests.benchmarks.race.measure import SearchTask, measure
from tests.benchmarks.race.small_race import problem

pytestmark = pytest.mark.jit


def run(solver, chosen, limit=5.0):
    return measure(problem=chosen.to_dict(), solver=solver, time_limit=limit, version="v", seed=0)


@pytest.mark.some(2)
@pytest.mark.parametrize("solver", ["exact", "auto", "highs", "cp-sat", "brute-force"])
@pytest.mark.parametrize("shape", [{}, {"first": 14}, {"workers": 5}])
def test_every_solver_finds_the_optimum(solver, shape):
    """Value and bound are those of exhaustion, and the record says on whose word."""
    chosen = problem(**shape)
    optimum = solve(chosen, solver="brute-force").objective
    found = run(solver, chosen)
    assert (found["value"], found["bound"]) == (optimum, optimum)
    assert found["status"] in (("proved",) if solver in ("exact", "brute-force") else ("proved", "claimed"))
    assert 0 < found["seconds"] < 5
    assert found["trusted"]


@pytest.mark.more
def test_nothing_to_admit():
    """A problem without a decision is proved at once by everybody."""
    assert run("highs", StepProblem.now([3, 5], [0, 0], [4]))["status"] == "proved"


class Backend:
    """Writes its model down for 0.2 s, searches for 0.05 s, and says what it was told to say."""

    def __init__(self, answer):
        self.answer = answer

    def minimise(self, task):
        time.sleep(0.2)
        self.left = task.remaining()
        time.sleep(0.05)
        return self.answer(task)


def with_backend(monkeypatch, answer):
    backend = Backend(answer)
    monkeypatch.setattr(module, "load", lambda name: backend)
    monkeypatch.setattr(module, "refresh", lambda solver, window: None)
    return backend


@pytest.mark.more
def test_writing_the_model_down_is_not_timed(monkeypatch):
    """Neither in the seconds nor in the limit that the solver gets."""
    backend = with_backend(monkeypatch, lambda task: RawAnswer(values=None, bound=None, stop="time", native_status=""))
    found = run("highs", problem(), limit=3.0)
    assert backend.left == 3.0
    assert found["building_seconds"] >= 0.2
    assert 0.05 <= found["seconds"] < 0.2
    assert found["status"] == "open"
    assert found["stop"] == "time"


@pytest.mark.more
def test_only_what_the_solver_itself_ended_is_closed(monkeypatch):
    """Greedy meets the elementary bound, but the solver ran out of time: open with a gap of zero, not a quick proof."""
    with_backend(monkeypatch, lambda task: RawAnswer(values=None, bound=None, stop="time", native_status=""))
    easy = StepProblem.now([5, 5, 0], [1, 1, 0], [3, 3])
    assert solve(easy, solver="highs").solver == "none"
    found = run("highs", easy)
    assert found["status"] == "open"
    assert found["value"] == found["bound"]


def test_a_claim_above_its_own_placement_is_kept_aside(monkeypatch):
    """The bound is not used, the claim is there to be reported."""
    answer = lambda task: RawAnswer(values=task.hint, bound=10_000.0, stop="done", native_status="Optimal")  # noqa: E731
    with_backend(monkeypatch, answer)
    found = run("highs", problem())
    assert found["stop"] == "contradicted"
    assert found["status"] == "open"
    assert found["claim"] > found["value"] >= found["bound"]


@pytest.mark.more
def test_a_placement_that_breaks_a_rule_is_not_used(monkeypatch):
    """Greedy's takes its place, and the solver's bound is dropped."""
    answer = lambda task: RawAnswer(values=[9.0] * len(task.hint), bound=0.0, stop="done", native_status="")  # noqa: E731
    with_backend(monkeypatch, answer)
    found = run("highs", problem())
    assert (found["stop"], found["status"]) == ("contradicted", "open")


@pytest.mark.more
def test_numbers_that_a_solver_is_not_started_with(monkeypatch):
    """HiGHS may hang on them, deaf to its limit: the run is refused and open."""
    with_backend(monkeypatch, lambda task: pytest.fail("was started"))
    found = run("highs", problem(first=10**9))
    assert (found["stop"], found["status"], found["trusted"]) == ("refused", "open", False)


def test_the_clock_of_a_search_task():
    """Begins at the first question and runs on at the second."""
    task = SearchTask(program=None, time_limit=2.0)
    time.sleep(0.02)
    assert task.remaining() == 2.0
    time.sleep(0.02)
    assert task.remaining() <= 1.98
    assert SearchTask(program=None).remaining() is None
