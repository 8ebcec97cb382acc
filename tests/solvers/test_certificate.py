"""The verifier: true results pass, forged ones do not.

A forgery is a result with one or more claims changed. Some changes leave a true statement (a lower bound that is lower
still, with the gap and status that belong to it): those have to pass and are counted apart.
"""

import ast
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from solvers.small_problems import enumerate_all, naive_optimum, random_problem, step_problems

from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem, barrier_total, objective
from lbopt.solvers import Result, elementary_bound, recount, solve, verify

MIP = StepProblem.now([0, 3], [2, 2], [10, 10, 7, 7])


@settings(max_examples=80)
@given(step_problems())
def test_the_verifier_counts_as_everybody_does(problem):
    """Its own digest, bound and exhaustive search agree with those of the package and with enumeration."""
    p = recount.Numbers.of(problem)
    assert recount.digest(p) == problem.digest
    assert recount.lower_bounds(p) == [elementary_bound(problem)]
    assert recount.exhaust(p, 10**6) == {(): naive_optimum(problem)}


def test_the_verifier_imports_the_standard_library_alone():
    """Beyond exceptions and its own arithmetic it imports lbopt for types, and for the door that asks for them."""
    folder = Path(recount.__file__).parent
    types = {"lbopt.kinds", "lbopt.model", "lbopt.solvers.result"}
    for name, allowed in (
        ("recount.py", set()),
        ("certificate.py", {"lbopt.exceptions", "lbopt.solvers", "lbopt.solvers.certificates", *types}),
    ):
        tree = ast.parse((folder / name).read_text())
        modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        standard = {"__future__", "dataclasses", "typing", "bisect", "hashlib", "math", "struct"}
        assert modules - standard <= allowed


def _consistent(problem: StepProblem, result: Result, **changes) -> Result:
    """A forger who keeps the books: objective, gaps and status follow from the changed assignment and bound."""
    forged = replace(result, **changes)
    value, barrier = objective(problem, forged.assignment), barrier_total(problem, forged.assignment)
    gap = value - forged.bound
    return replace(
        forged,
        objective=value,
        gap=gap,
        relative_gap=gap / max(1, value),
        barrier_gap=gap / barrier if barrier else 0.0,
        status="optimal" if gap == 0 else "feasible",
    )


def _forgeries(problem: StepProblem, result: Result, rng: random.Random):
    """Yield (name, forged result, still true). Truth is judged by the naive enumeration, not by the verifier."""
    everything = list(enumerate_all(problem))
    optimum, least_loads = min((value, loads) for value, loads, _ in everything)
    elementary = elementary_bound(problem)
    step = rng.randint(1, 9)

    yield "objective", replace(result, objective=result.objective + step), False
    yield "objective below", replace(result, objective=result.objective - step), False
    yield "objective as float", replace(result, objective=result.objective + 0.5), False
    yield "gap", replace(result, gap=result.gap + step), False
    yield "relative gap", replace(result, relative_gap=result.relative_gap + 0.01), False
    yield "barrier gap", replace(result, barrier_gap=result.barrier_gap + 0.01), False
    yield "status", replace(result, status="feasible"), False
    yield "status unknown", replace(result, status="unknown"), False
    yield "digest", replace(result, problem_digest=result.problem_digest[::-1]), False
    yield "proof of nobody", replace(result, proof="claimed:oracle"), False
    yield "no assignment", replace(result, assignment=None), False
    yield "bound as float", replace(result, bound=float(result.bound)), False
    yield "bound alone", replace(result, bound=result.bound - step), False
    yield "stop reason", replace(result, stop_reason="tired"), False
    yield "tie", replace(result, tie="random"), False
    yield "elementary-bound", replace(result, proof="elementary-bound", stop_reason="proved"), optimum == elementary
    yield "bound above the optimum", _consistent(problem, result, bound=optimum + step), False

    lower = _consistent(problem, result, bound=optimum - step, stop_reason="time")
    yield "lower bound, elementary", replace(lower, proof="elementary-bound"), optimum - step <= elementary
    level_by_level = problem.horizon == 0 and problem.num_admitted == problem.num_requests
    open_enumeration = level_by_level and result.solver == "exact"  # its bound rises while it goes on
    yield "lower bound, exhaustion", replace(lower, proof="exhaustion"), open_enumeration
    yield "lower bound, claimed", replace(lower, proof=f"claimed:{result.solver}"), True
    yield "proved with a gap", replace(lower, stop_reason="proved"), False
    yield "other problem's digest", replace(result, problem_digest=MIP.digest), problem.digest == MIP.digest

    value, loads, choice = rng.choice(everything)
    other = np.array(choice, dtype=np.int64)
    same_book = replace(result, assignment=other)
    yield (
        "assignment alone",
        same_book,
        value == result.objective
        and (barrier_total(problem, other) == barrier_total(problem, result.assignment) or result.gap == 0),
    )
    raised = _consistent(problem, result, assignment=other, bound=value, proof="exhaustion", stop_reason="proved")
    yield "worse assignment called optimal", raised, value == optimum
    claimed = replace(raised, proof=f"claimed:{result.solver}", stop_reason="claimed")
    yield "worse assignment claimed optimal", claimed, value == optimum
    yield "leximax", replace(claimed, tie="leximax"), value == optimum and loads == least_loads
    if problem.num_requests:
        broken = result.assignment.copy()
        broken[rng.randrange(broken.size)] = problem.num_workers
        yield "worker that does not exist", replace(result, assignment=broken), False
        everyone = np.full(problem.num_requests, rng.randrange(problem.num_workers), dtype=np.int64)
        fits = any(tuple(everyone) == choice for _, _, choice in everything)
        if not fits:
            yield "slots overrun", replace(result, assignment=everyone), False


def test_forged_results_are_rejected():
    """More than 2,000 forgeries: every one that is no longer true raises, every one that still is true passes."""
    rng = random.Random(7)
    rejected, still_true = 0, 0
    for seed in range(100):
        problem = random_problem(random.Random(seed), (2, 30)[seed % 2], requests=5)
        result = solve(problem, "brute-force")
        verify(problem, result)
        for name, forged, holds in _forgeries(problem, result, rng):
            if holds:
                verify(problem, forged)
                still_true += 1
                continue
            with pytest.raises(CertificateError):
                verify(problem, forged)
                pytest.fail(f"seed {seed}: forgery '{name}' passed: {forged.to_dict()}")
            rejected += 1
    assert rejected > 2000
    assert still_true > 100


def test_what_rests_on_a_word_is_said():
    result = solve(MIP, "highs")
    assert result.proof == "claimed:highs"
    report = verify(MIP, result, exhaust_limit=0)
    assert report.feasible
    assert report.objective_exact
    assert not report.bound_established
    assert "the word of highs" in str(report)
    assert verify(MIP, result).bound_established


def test_an_honest_unknown_passes():
    empty = replace(
        solve(MIP, "brute-force"),
        assignment=None,
        objective=None,
        gap=None,
        relative_gap=None,
        barrier_gap=None,
        status="unknown",
        bound=0,
        proof=None,
        stop_reason="time",
    )
    report = verify(MIP, empty)
    assert not report.feasible
    assert "unknown" in empty.summary()
    with pytest.raises(CertificateError, match="no assignment"):
        verify(MIP, replace(empty, status="optimal"))
