"""The front door: arguments, the floor below which it never falls, false claims, and what is imported when."""

import importlib
import importlib.util
import json
import logging
import subprocess
import sys
import time
import types
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from solvers.small_problems import enumerate_all, naive_optimum, step_problems

from lbopt.exceptions import BackendUnavailableError, CertificateError, InfeasibleDecisionError, InputError
from lbopt.model import StepProblem, objective
from lbopt.solvers import BACKENDS, Result, elementary_bound, greedy_assignment, is_available, registry, solve, verify
from lbopt.solvers.backend import RawAnswer

# Elementary reasoning does not close this one: it says a largest load of 19, the truth is 20.
OPEN = StepProblem.now([0, 3], [2, 2], [10, 10, 7, 7])


@settings(max_examples=80)
@given(step_problems())
def test_elementary_bound_and_greedy_enclose_the_optimum(problem):
    optimum, _ = naive_optimum(problem)
    assert 0 <= elementary_bound(problem) <= optimum
    assert objective(problem, greedy_assignment(problem)) >= optimum


@settings(max_examples=40)
@given(step_problems())
def test_never_worse_than_a_hint_and_equal_calls_agree(problem):
    choices = list(enumerate_all(problem))
    value, _, hint = choices[len(choices) // 2]
    result = solve(problem, "auto", hint=hint)
    assert result.objective <= value
    again = solve(problem, "auto", hint=hint)
    assert np.array_equal(result.assignment, again.assignment)


@settings(max_examples=60)
@given(step_problems())
def test_a_result_survives_its_file(problem):
    result = solve(problem, "brute-force")
    again = Result.from_json(result.to_json())
    assert again == result
    assert verify(problem, again).bound_established
    assert result.summary().startswith("optimal")


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "3", True, [1]])
def test_bad_time_limits(limit):
    with pytest.raises(InputError, match="time_limit is"):
        solve(OPEN, time_limit=limit)


def test_other_bad_arguments():
    with pytest.raises(InputError, match="did you mean 'highs'"):
        solve(OPEN, "higs")
    with pytest.raises(InputError, match="expected any or leximax"):
        solve(OPEN, tie="all")
    with pytest.raises(InputError, match="seed is -1"):
        solve(OPEN, seed=-1)
    with pytest.raises(InputError, match="expected a StepProblem"):
        solve([1, 2])
    with pytest.raises(InfeasibleDecisionError, match="the hint"):
        solve(OPEN, hint=[0] * 6)
    with pytest.raises(TypeError, match="unexpected keyword argument 'efort'"):
        solve(OPEN, "search", efort=3)


@pytest.mark.parametrize("name", list(BACKENDS))
def test_trivial_problems(name):
    for problem in (
        StepProblem.now([3, 1], [0, 0], [5, 5]),
        StepProblem(base=[3, 1], slots=[1, 1], work=np.zeros((0, 1), dtype=np.int64)),
    ):
        result = solve(problem, name, tie="leximax")
        assert (result.objective, result.bound, result.proved, result.tie) == (2, 2, True, "leximax")
        verify(problem, result)


@pytest.mark.parametrize("name", list(BACKENDS))
def test_conformance(name):
    """Each backend on the same tiny problems: right optimum, claims labelled as claims."""
    result = solve(OPEN, name, seed=3, time_limit=30)
    assert result.objective == naive_optimum(OPEN)[0]
    assert result.status == "optimal"
    assert result.proved == (name == "brute-force")  # elementary reasoning does not close this problem
    assert result.solver == name
    assert solve(OPEN, name, seed=3).assignment.tolist() == result.assignment.tolist()


def test_an_absent_package_is_named_with_its_cure(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr("lbopt.solvers.registry.find_spec", lambda name: None if name == "pulp" else real(name))
    assert not is_available("pulp")
    with pytest.raises(BackendUnavailableError, match=r'pip install "lbopt\[pulp\]"'):
        solve(OPEN, "pulp")


def test_too_many_leaves_are_refused():
    sizes = [7 * i * i for i in range(60)]
    problem = StepProblem.now([0, 50_000, *range(6)], [5] * 8, sizes)
    assert solve(problem, "highs", time_limit=0.2).status == "feasible"  # so elementary reasoning does not close it
    with pytest.raises(InputError, match="brute-force accepts"):
        solve(problem, "brute-force")


def _pretend(monkeypatch, answer):
    backend = types.SimpleNamespace(minimise=lambda task: answer)
    monkeypatch.setattr("lbopt.solvers.program_engine.load", lambda name: backend)


def test_a_bound_above_a_known_solution_is_dropped(monkeypatch, caplog):
    _pretend(monkeypatch, RawAnswer(values=None, bound=1e5, stop="done", native_status="Optimal"))
    with caplog.at_level(logging.WARNING):
        result = solve(OPEN, "highs")
    assert result.stop_reason == "contradicted"
    assert result.proof == "elementary-bound"
    assert "the answer is wrong" in caplog.text
    verify(OPEN, result)


def test_values_that_break_a_rule_are_dropped(monkeypatch):
    for values in ([9.0] * 40, [float("nan")] * 40, [0.0] * 40):
        _pretend(monkeypatch, RawAnswer(values=values, bound=None, stop="done", native_status="Optimal"))
        result = solve(OPEN, "highs")
        assert (result.stop_reason, result.proof) == ("contradicted", "elementary-bound")
        assert result.objective == objective(OPEN, greedy_assignment(OPEN))


def test_infeasible_on_a_feasible_problem_is_a_failure(monkeypatch):
    _pretend(monkeypatch, RawAnswer(values=None, bound=None, stop="failed", native_status="Infeasible"))
    assert solve(OPEN, "highs").stop_reason == "failed"


def test_claims_beyond_the_safe_scale_are_not_used():
    problem = StepProblem.now([0, 1], [3, 3], [30 * 10**9, 30 * 10**9 + 1, 20 * 10**9, 20 * 10**9, 20 * 10**9, 7])
    result = solve(problem, "highs", time_limit=5)
    assert result.proof == "elementary-bound"
    assert result.stop_reason in ("refused", "time", "proved")
    assert verify(problem, result).feasible


def test_the_time_limit_holds():
    rng = np.random.default_rng(1)
    problem = StepProblem.now(rng.integers(0, 900, 8), [6] * 8, rng.integers(1, 997, 48))
    for name in ("highs", "cp-sat", "pulp"):
        result = solve(problem, name, time_limit=0.5)
        assert result.seconds < 5
        assert result.stop_reason in ("time", "claimed", "proved")
        verify(problem, result)


@pytest.mark.alone
@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["highs", "cp-sat"])
def test_ctrl_c_returns_the_incumbent(name):
    """A signal during the native solve ends it; the best assignment so far comes back."""
    code = f"""
import os, signal, threading, numpy as np
from lbopt import StepProblem, solve
rng = np.random.default_rng(1)
problem = StepProblem.now(rng.integers(0, 9000, 16), [8] * 16, rng.integers(1, 9973, 160))
solve(StepProblem.now([0, 3], [2, 2], [10, 10, 7, 7]), "{name}")  # the package is imported
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
result = solve(problem, "{name}", time_limit=60)
print(result.stop_reason, result.assignment is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=90)
    assert done.stdout.split() == ["interrupted", "True"], done.stderr


def test_nothing_heavy_is_imported():
    code = (
        "import sys, lbopt, lbopt.solvers; "
        "print([m for m in ('scipy','pandas','numba','highspy','ortools','pulp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.some(1)
@pytest.mark.parametrize("order", [("highs", "cp-sat"), ("cp-sat", "highs")])
def test_both_solvers_live_in_one_process(order):
    code = f"""
from lbopt import StepProblem, solve
problem = StepProblem.now([0, 3], [2, 2], [10, 10, 7, 7])
print(*[solve(problem, name).objective for name in {order!r}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(set(done.stdout.split())) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "not a result"),
        ({"version": 9}, "format version 9"),
        ({"assignment": [0.5]}, "assignment is"),
        ({"bound": "0"}, "bound is '0'"),
        ({"objective": 1.5}, "objective is 1.5"),
        ({"seconds": None}, "seconds is None"),
        ({"proof": 3}, "proof is 3"),
        ({"tie": None}, "tie is None"),
        ({"gap": True}, "gap is True"),
    ],
)
def test_a_bad_result_file_is_named(change, words):
    with pytest.raises(InputError, match=words):
        Result.from_dict({**solve(OPEN, "brute-force").to_dict(), **change})
    with pytest.raises(InputError, match="lacks bound"):
        Result.from_dict({k: v for k, v in solve(OPEN, "brute-force").to_dict().items() if k != "bound"})


def test_beyond_all_trusted_ranges_auto_keeps_to_the_widest_and_ends_in_time():
    """On this problem HiGHS runs on for good, whatever its time limit: `auto` leaves it to CP-SAT, HiGHS refuses."""
    problem = StepProblem(
        [[29658362, 29658362], [337514925, 337514925], [478315578, 478315578]],
        [3, 1, 1],
        [[257552741, 973605377], [158326893, 99050461], [962236773, 85032019], [984506894, 295118474]],
        [1, 1, 1, 1],
    )
    optimum = solve(problem, "brute-force").objective
    for solver in ("auto", "cp-sat", "highs"):
        result = solve(problem, solver, 5)
        assert result.bound <= optimum <= result.objective
    assert solve(problem, "highs", 5).stop_reason == "refused"
    wide = StepProblem.now([10**12, 3, 5 * 10**11, 7], [3, 3, 3, 3], [10**11 + 7919 * i * i for i in range(14)])
    assert solve(wide, "auto", 2).solver == "cp-sat"


def test_a_false_duration_is_refused():
    """`seconds` is a claim like any other."""
    result = solve(OPEN)
    for seconds in (-1.0, float("nan"), float("inf"), True):
        with pytest.raises(CertificateError, match="seconds is"):
            verify(OPEN, replace(result, seconds=seconds))


def test_a_file_says_that_a_proof_is_left_out(monkeypatch):
    result = solve(OPEN, "brute-force")
    assert "certificate_left_out" not in result.to_dict()
    data = json.loads(result.to_json(certificate=True))
    assert data["certificate_left_out"] == "there is none of a bound that is proved by complete enumeration"
    assert Result.from_dict(data) == result
    assert "certificate" not in data

    def too_long():
        raise CertificateError("the proof needs more than 9 records; it is not written down")

    searched = replace(result, proof="certificate", evidence=too_long)
    assert searched.to_dict(certificate=True)["certificate_left_out"].startswith("the proof needs more than 9 records")
    read = Result.from_json(searched.to_json())
    assert "not in the file" in read.to_dict(certificate=True)["certificate_left_out"]


def test_seconds_do_not_hold_what_it_takes_to_load_a_search(monkeypatch):
    """The first import of a search loads the compiler, which takes a second."""
    real = importlib.import_module

    def slow(name):
        time.sleep(0.5)
        return real(name)

    monkeypatch.setattr("lbopt.solvers.registry.import_module", slow)
    registry._engine.cache_clear()
    begun = time.perf_counter()
    result = solve(OPEN, "brute-force")
    assert result.seconds <= time.perf_counter() - begun - 0.5
