"""The account of the time that kernels take before they run, and the one line that is said about it."""

import io
import logging
import time

import pytest

from lbopt import compile_progress, compile_time
from lbopt.solvers.budget import Budget, countdown


@pytest.fixture
def account(monkeypatch):
    for name, value in (("total", 0.0), ("begun", None), ("depth", 0)):
        monkeypatch.setattr(compile_time._Account, name, value)
    monkeypatch.setattr(compile_progress._Shown, "announced", False)


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


def one():
    return 1


def two():
    return called_one() + 1


def three():
    return called_two() + called_one()


class Dispatcher:
    """As a kernel looks to one that calls it."""

    def __init__(self, function):
        self.py_func = function


called_one, called_two = Dispatcher(one), Dispatcher(two)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_it_is_said_once(account, caplog):
    with caplog.at_level(logging.INFO, logger="lbopt"):
        for module in ("lbopt.kernels.hindsight_of_nothing", "somebody.else"):
            compile_progress._announce(module)
        assert caplog.messages == []
        compile_progress._announce("lbopt.kernels.simulation.loop")
        compile_progress._announce("lbopt.kernels.search.envelopes")
    assert caplog.messages == [f"compiling kernels once (about {compile_progress.ABOUT['simulation']} s)"]


def test_a_bar_counts_the_kernels_that_a_kernel_calls(monkeypatch, caplog):
    """In a terminal it is drawn and taken away, elsewhere a log has the lines, and the silent log silences both."""
    assert compile_progress.reached(three) == {one, two, three}
    for name in ("_PATIENCE", "_EVERY", "_EVERY_LINE"):
        monkeypatch.setattr(compile_progress, name, 0.0)

    def compile_all(done, stream, level=logging.INFO):
        monkeypatch.setattr("sys.stderr", stream)
        with caplog.at_level(level, logger="lbopt.kernels"):
            shown = compile_progress.Compiling(three, done)
            for function in (one, test_it_is_said_once, two, one, three):
                shown.compiled(function)
            shown.over()
        return stream.getvalue()

    drawn = compile_all(set(), Terminal()).split("\r")
    assert [line.partition(" [")[0] for line in drawn[1:3]] == ["compiling kernel 2 of 3", "compiling kernel 3 of 3"]
    assert drawn[3].strip() == drawn[4] == ""
    assert caplog.messages == []
    assert "compiling kernel 2 of 2" in compile_all({one}, Terminal())
    assert compile_all(set(), Terminal(), logging.ERROR) == compile_all(set(), io.StringIO()) == ""
    assert caplog.messages == ["compiling kernel 2 of 3", "compiling kernel 3 of 3"]


def test_no_clock_counts_it(account):
    budget, limit = Budget(5.0), countdown(5.0)
    limit()
    compile_time._Account.total += 100.0
    assert budget.seconds < 1.0
    assert budget.remaining() > 4.0
    assert budget.limits.remaining() > 4.0
    assert limit() > 4.0
