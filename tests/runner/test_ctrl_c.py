"""Ctrl-C is held back or noted within a block; however that ends, the handler from before is back."""

import signal
import subprocess
import sys
import threading

import pytest

from lbopt.runner.interrupts import deaf_children, held_interrupts, noted_interrupts

BLOCKS = (held_interrupts, noted_interrupts)


@pytest.fixture
def heard():
    """A handler of Ctrl-C of the caller's own, as a list of what it heard."""
    heard, before = [], signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    yield heard
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("presses", [0, 1, 3])
@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_the_handler_from_before_is_back(heard, block, presses, error):
    before = signal.getsignal(signal.SIGINT)

    def work():
        with block():
            assert signal.getsignal(signal.SIGINT) is not before
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(error):
            work()
    assert signal.getsignal(signal.SIGINT) is before
    assert len(heard) == (min(presses, 1) if block is held_interrupts else presses)


def test_held_back_until_the_block_has_ended(heard):
    with held_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]


def test_noted_and_acted_on_at_once(heard):
    with noted_interrupts() as pressed:
        signal.raise_signal(signal.SIGINT)
        assert (heard, pressed) == ([signal.SIGINT], [signal.SIGINT])


def test_pythons_own_handler_raises_through_both():
    """As in a run: a note inside of which a row is written."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt), noted_interrupts() as pressed:
        with held_interrupts():
            signal.raise_signal(signal.SIGINT)
        pytest.fail("Ctrl-C was lost")
    assert pressed == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("block", BLOCKS)
def test_other_threads_and_ignored_signals_are_left_alone(block):
    seen = []

    def work():
        with block():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
        assert seen[1] == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_processes_that_start_in_a_deaf_block_do_not_hear_ctrl_c(heard):
    """The group gets it, as from a keyboard; here it acts at the end of the block, and is heard again afterwards."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('deaf')"
    with deaf_children():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert (done.returncode, done.stdout) == (0, "deaf\n")
    assert heard == [signal.SIGINT]
    signal.raise_signal(signal.SIGINT)
    assert len(heard) == 2
