"""Nothing is called proved on a search's word."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest

from lbopt import Conditions, Result, StepProblem, solve, verify
from lbopt.exceptions import CertificateError
from lbopt.solvers import checked as checking
from lbopt.solvers.allowance import SpentError, allowing, spend
from lbopt.solvers.certificates import ContradictedError
from lbopt.solvers.exact import engines

LOADS, SLOTS = [900, 700, 400, 650], [2, 3, 2, 1]
SIZES = [310, 260, 151, 120, 80, 433, 95, 277, 199, 34, 68, 512]
STEP = StepProblem.now(LOADS, SLOTS, SIZES)
ALL = StepProblem.now(LOADS, [4, 4, 4, 4], SIZES)
WINDOW = StepProblem.survives([9, 4, 0], [1, 1, 1], [5, 3, 3, 8, 1], 2)
ENDS = StepProblem([[9, 5, 1], [4, 4, 0], [0, 0, 0]], [1, 2, 1], [[5, 5, 0], [3, 0, 0], [8, 8, 8], [2, 2, 2]])
UNDER = STEP.under(Conditions(capacity=np.array([1_500, 1_500, 1_500, 1_500])))
KINDS = {"step": STEP, "all admitted": ALL, "window": WINDOW, "ends": ENDS, "conditions": UNDER}


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_check_it_is_the_word_of_the_search(kind):
    problem = KINDS[kind]
    result, said = solve(problem, "search"), solve(problem, "search", check=False)
    assert result.proved and result.status == said.status == "optimal" and result.objective == said.objective
    if result.proof == "elementary-bound":
        return  # closed-form reasoning is no search
    assert (said.proof, said.proved, said.stop_reason) == ("search", False, "searched")
    assert "proved by the search, not checked" in said.summary() and "not checked" in said.bound_origin
    assert Result.from_json(said.to_json()).proof == "search"
    assert verify(problem, said).bound_established, "its proof can still be written and checked"


@pytest.mark.parametrize("kind", ["step", "window", "ends", "conditions"])
def test_no_time_for_the_check_is_said(kind, monkeypatch):
    def over(work, stopped):
        raise SpentError

    monkeypatch.setattr(checking, "allowing", over)
    result = solve(KINDS[kind], "search")
    assert (result.status, result.proof, result.proved) == ("optimal", "search", False)


def test_a_proof_too_long_to_be_written_is_said(monkeypatch):
    def too_long(problem, found):
        raise CertificateError("the proof needs a tree of more than 1 records; it is not written down")

    monkeypatch.setattr(engines, "written_proof", too_long)
    monkeypatch.setattr(engines.Steps, "_holds", lambda self, found: False)
    result = solve(STEP, "search")
    assert (result.proof, result.stop_reason) == ("search", "searched")
    with pytest.raises(CertificateError, match="more than 1 records"):
        result.certificate()


def test_a_contradiction_costs_the_bound(monkeypatch, caplog):
    def wrong(problem, found):
        raise ContradictedError("an assignment of cost 3 was found, below 4")

    monkeypatch.setattr(engines, "written_proof", wrong)
    monkeypatch.setattr(engines.Steps, "_holds", lambda self, found: False)
    with caplog.at_level(logging.ERROR):
        result = solve(STEP, "search")
    assert result.stop_reason == "contradicted" and result.proof == "elementary-bound" and not result.proved
    assert result.bound < result.objective and "defect of lbopt" in caplog.text


def test_a_proof_that_fails_is_not_believed(monkeypatch, caplog):
    written = engines.written_proof

    def one_too_high(problem, found):
        return replace(written(problem, found), bound=found.bound + 1)

    monkeypatch.setattr(engines, "written_proof", one_too_high)
    monkeypatch.setattr(engines.Steps, "_holds", lambda self, found: False)
    with caplog.at_level(logging.WARNING):
        result = solve(STEP, "search")
    assert result.proof == "search" and "fails" in caplog.text


def test_ctrl_c_during_the_check_keeps_the_answer(monkeypatch):
    def pressed(problem, found):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "written_proof", pressed)
    monkeypatch.setattr(engines.Steps, "_holds", lambda self, found: False)
    result = solve(STEP, "search")
    assert (result.status, result.proof, result.stop_reason) == ("optimal", "search", "interrupted")


def test_the_bound_of_an_open_answer_is_the_word_of_the_search():
    rng = np.random.default_rng(3)
    problem = StepProblem.now(rng.integers(0, 900, 24), rng.integers(3, 7, 24), rng.integers(40, 90, 160) * 7 + 1)
    result = solve(problem, "search", effort=1)
    if result.status == "feasible":
        assert result.proof in ("search", "elementary-bound") and result.stop_reason == "effort"


def test_an_enumeration_is_repeated_by_the_checker():
    sizes = np.random.default_rng(8).integers(1_000, 60_000, 14)
    result = solve(StepProblem.now([0, 0, 0], [14, 14, 14], sizes), "search")
    assert result.proved and result.proof in ("exhaustion", "elementary-bound", "certificate")


def test_an_allowance_ends_by_work_and_by_whoever_waits():
    spend(1 << 60)  # nobody limits it
    with allowing(10, lambda: None):
        spend(10)
        with pytest.raises(SpentError):
            spend(1)
    gone = threading.Event()
    with allowing(10, gone.is_set):
        spend(1)
        gone.set()
        with pytest.raises(SpentError):
            spend(1)
    spend(1 << 60)
