"""The command line where the terminal is narrow, plain or knows ASCII alone, and where there is no home."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from cli.terminal import environment, lbopt

#: LANG=C alone makes Python take UTF-8 all the same. These switch that off.
ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

SURROUNDINGS = {
    "ascii": ASCII,
    "no colour, 40 columns": {"NO_COLOR": "1", "COLUMNS": "40"},
    "dumb": {"TERM": "dumb", "COLUMNS": ""},
    "home is a file": {"HOME": "/dev/null", "LBOPT_CACHE": ""},
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_verbs_say_the_same_everywhere(name, tmp_path):
    """No traceback and no escape sequence; the same words, but for signs that the terminal lacks."""
    for words, expected in (("hardware device h800", 0), ("traces fetch nonsense", 2)):
        done = lbopt(*words.split(), cwd=tmp_path, **SURROUNDINGS[name])
        assert done.returncode == expected, done.stderr
        assert "Traceback" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert re.search("no public trace|H800", done.stdout + done.stderr)
    assert list(tmp_path.iterdir()) == []


#: Waits until it is stopped, in the place of a verb.
WAITING = """
import sys, time
import lbopt.cli
def wait():
    try:
        print("there", flush=True)
        time.sleep(30)
    finally:
        print("tidied up", flush=True)
lbopt.cli.main = wait
from lbopt.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("ignored", [False, True])
def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path, number, ignored):
    """Also in a script's background job, where Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", WAITING], env=environment(), stdout=PIPE, stderr=PIPE, text=True
        )
    finally:
        if ignored:
            signal.signal(signal.SIGINT, before)
    assert process.stdout.readline() == "there\n"
    process.send_signal(number)
    if ignored and number == signal.SIGINT:
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
    shown, said = process.communicate(timeout=20)
    assert (process.returncode, shown, said) == (130, "tidied up\n", "interrupted\n")


#: Ends well, and lingers in an exit function, as engine "joblib" does.
LINGERING = """
import atexit, sys, time
import lbopt.cli
def linger():
    print("there", flush=True)
    time.sleep(0.3)
    print("tidied up", flush=True)
atexit.register(linger)
lbopt.cli.main = lambda: sys.exit(1)
from lbopt.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_meets_exit_functions_changes_nothing(number):
    """Everything is written by then: the code stays that of the run, and there is no traceback."""
    process = subprocess.Popen(
        [sys.executable, "-c", LINGERING], env=environment(), stdout=PIPE, stderr=PIPE, text=True
    )
    assert process.stdout.readline() == "there\n"
    process.send_signal(number)
    shown, said = process.communicate(timeout=20)
    assert (process.returncode, shown, said) == (1, "tidied up\n", "")


#: A press that meets a finaliser, in which Python drops it.
DROPPED = """
import signal, sys, time
import lbopt.cli
class Thing:
    def __del__(self):
        signal.raise_signal(signal.{name})
def run():
    Thing()
    time.sleep(20)
lbopt.cli.main = run
from lbopt.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_meets_a_finaliser_ends_the_run(name):
    code = DROPPED.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False, timeout=15
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_standard_output_that_is_full(tmp_path):
    """The results of a verb that cannot be shown: one sentence, and not exit code 0."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lbopt", "show", "policies"],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"
