"""Ctrl-C inside and after the blocks that hold it back or note it: the handler that was there is there again."""

import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from lbopt.runner.execute import deaf_children, noted_interrupts


@pytest.fixture
def pressed():
    """The presses that the handler of the test has seen."""
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("block", [noted_interrupts, partial(noted_interrupts, act=False)])
@pytest.mark.parametrize("fails", [False, True])
def test_the_handler_that_was_there_is_there_again(pressed, block, fails):
    handler = signal.getsignal(signal.SIGINT)
    try:
        with block():
            assert signal.getsignal(signal.SIGINT) is not handler
            if fails:
                raise ValueError
    except ValueError:
        assert fails
    assert signal.getsignal(signal.SIGINT) is handler
    signal.raise_signal(signal.SIGINT)
    assert pressed == [signal.SIGINT]


def test_a_press_acts_once_when_the_block_has_ended(pressed):
    with noted_interrupts(act=False):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert pressed == []
    assert pressed == [signal.SIGINT]
    with noted_interrupts(act=False):
        pass
    assert pressed == [signal.SIGINT]


def test_a_noted_press_acts_at_once(pressed):
    with noted_interrupts() as noted:
        assert noted == []
        signal.raise_signal(signal.SIGINT)
        assert [number for number, _ in noted] == pressed == [signal.SIGINT]
    signal.raise_signal(signal.SIGINT)
    assert [number for number, _ in noted] == [signal.SIGINT]


@pytest.mark.parametrize("block", [noted_interrupts, partial(noted_interrupts, act=False)])
@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_without_a_handler_of_python_nothing_changes(pressed, block, handler):
    """Jobs in the background ignore Ctrl-C, and go on doing so."""
    signal.signal(signal.SIGINT, handler)
    with block() as noted:
        assert signal.getsignal(signal.SIGINT) is handler
    assert not noted
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("block", [noted_interrupts, partial(noted_interrupts, act=False)])
def test_outside_the_main_thread_nothing_changes(pressed, block):
    handler, found = signal.getsignal(signal.SIGINT), []

    def run():
        with block():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [handler]


def test_processes_that_start_in_a_deaf_block_do_not_hear_ctrl_c(pressed):
    """The group gets it, as from a keyboard; here it acts at the end of the block, and is heard again afterwards."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('deaf')"
    with deaf_children():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        signal.raise_signal(signal.SIGINT)
        assert pressed == []
    assert (done.returncode, done.stdout) == (0, "deaf\n")
    assert pressed == [signal.SIGINT]
    signal.raise_signal(signal.SIGINT)
    assert len(pressed) == 2
