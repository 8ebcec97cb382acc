"""The account of the time that kernels take before they run, and the one line that is said about it."""

import logging
import time

import pytest

from lbopt.kernels import compile_time
from lbopt.solvers.budget import Budget, countdown


@pytest.fixture
def account(monkeypatch):
    for name, value in (("total", 0.0), ("begun", 0.0), ("depth", 0), ("announced", False)):
        monkeypatch.setattr(compile_time._Account, name, value)


def test_a_kernel_prepared_within_another_counts_once(account):
    with compile_time.preparing():
        time.sleep(0.02)
        with compile_time.preparing():
            time.sleep(0.02)
        inside = compile_time.seconds()
    assert 0.04 <= inside <= compile_time.seconds() < 0.2
    before = compile_time.seconds()
    time.sleep(0.01)
    assert compile_time.seconds() == before


def test_an_error_ends_the_account(account):
    with pytest.raises(ValueError, match="no"), compile_time.preparing():
        raise ValueError("no")
    assert compile_time._Account.depth == 0


def test_it_is_said_once(account, caplog):
    with caplog.at_level(logging.INFO, logger="lbopt"):
        compile_time.announce("lbopt.kernels.by_reference")
        compile_time.announce("somebody.else")
        assert caplog.messages == []
        compile_time.announce("lbopt.kernels.simulation.loop")
        compile_time.announce("lbopt.kernels.search.envelopes")
    assert caplog.messages == [f"compiling kernels once (about {compile_time.ABOUT['simulation']} s)"]


def test_no_clock_counts_it(account):
    budget, limit = Budget(5.0), countdown(5.0)
    limit()
    compile_time._Account.total += 100.0
    assert budget.seconds < 1.0
    assert budget.remaining() > 4.0
    assert budget.limits.remaining() > 4.0
    assert limit() > 4.0
