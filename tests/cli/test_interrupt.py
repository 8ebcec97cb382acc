"""Ctrl-C in a real process: exit code 130, and either a report of what is done or nothing.

No test guesses when to press: the process leaves a file when it has come to the place where the test wants it.
"""

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from cli.terminal import environment

pytestmark = pytest.mark.alone

# A router of a user that leaves a file at its fifth decision.
SLOW = """
import time
from pathlib import Path
import numpy as np
calls = 0
def slowly(o):
    global calls
    calls += 1
    if calls == 5:
        Path("there").touch()
    time.sleep(0.05)
    workers = np.full(o.sizes.size, -1)
    places = np.repeat(np.arange(o.free_slots.size), o.free_slots)[: o.num_admissible]
    workers[: places.size] = places
    return workers
"""

# lbopt as it is, in which a native solver leaves a file when it begins, or lingers a while when it has finished.
WATCHED = """
import sys, time
from pathlib import Path
package, when = sys.argv.pop(1), sys.argv.pop(1)
if package == "highspy":
    import highspy
    home, name = highspy.Highs, "run"
else:
    from ortools.sat.python import cp_model
    home, name = cp_model.CpSolver, "solve"
work = getattr(home, name)
def watched(*arguments, **options):
    if when == "during":
        Path("there").touch()
    answer = work(*arguments, **options)
    if when == "after":
        Path("there").touch()
        time.sleep(1)
    Path("finished").touch()
    return answer
setattr(home, name, watched)
from lbopt.__main__ import main
main()
"""

EASY = {"format": "lbopt-step-problem", "version": 1, "base": [10, 3, 5], "slots": [1, 2, 0], "work": [4, 7, 9, 2, 6]}
#: A greedy placement meets the bound: no solver is asked.
CLOSED = EASY | {"base": [5, 5, 0], "slots": [1, 1, 0], "work": [3, 3]}


def hard(bits):
    """A state that no solver here closes within a minute: 90 requests of odd sizes for 9 workers."""
    draw = random.Random(1)
    return EASY | {"base": [0] * 9, "slots": [8] * 9, "work": [draw.randrange(2**bits) for _ in range(90)]}


@pytest.fixture
def start(tmp_path):
    """A function that starts Python on a file; whatever still runs at the end of the test is killed."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "watched.py").write_text(WATCHED)
    running = []

    def call(*words):
        process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=tmp_path,
            env=environment(PYTHONDONTWRITEBYTECODE="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def interrupt(process, folder, *, at_work=False, within=10):
    """Press Ctrl-C once the process is there; returns standard output and error. The exit code has to be 130.

    With `at_work`, the native solver must not have finished when Ctrl-C comes.
    """
    limit = time.monotonic() + 400  # kernels may have to be compiled first, on a machine that has other work
    while not (folder / "there").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit, "it never came to the place where it was to be interrupted"
        time.sleep(0.01)
    time.sleep(0.2)
    assert process.poll() is None, "it ended too early for this test"
    assert not (at_work and (folder / "finished").exists()), "the solver ended too early for this test"
    process.send_signal(signal.SIGINT)
    try:
        shown, said = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        pytest.fail(f"Ctrl-C was not heard within {within} s")
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert [path.name for path in folder.iterdir() if "partial" in path.name] == []
    return shown, said


def report(folder):
    """The account and the states of an interrupted study, whose page has to say that it is one."""
    run = json.loads((folder / "out" / "run.json").read_text())
    assert run["interrupted"] is True
    assert "Interrupted." in (folder / "out" / "report.html").read_text()
    return run, (folder / "out" / "steps.jsonl").read_text().splitlines()


FLEET = ("-n", 300, "-G", 3, "-B", 4)


def test_an_interrupted_study_reports_what_is_done(start, tmp_path):
    """Ctrl-C while a user's router decides: 130, a report of the states so far, marked as interrupted."""
    study = ("gap", *FLEET, "--states", 150, "-p", "fcfs", "-p", "slow.py:slowly", "--no-long-runs", "-o", "out")
    _, said = interrupt(start("-m", "lbopt", *study), tmp_path)
    assert "interrupted: tables and report cover what was done until then" in said
    run, states = report(tmp_path)
    assert 4 <= len(states) < 300
    assert all(set(json.loads(state)["decisions"]) == {"fcfs", "slow.py:slowly"} for state in states)
    assert set(run["files"]) | {"run.json"} == {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.more
@pytest.mark.parametrize(("package", "solver"), [("highspy", "highs"), ("ortools", "cp-sat")])
def test_a_study_is_interrupted_while_its_solver_works(start, tmp_path, package, solver):
    """Ctrl-C while a solver is at a state ends the study: a solver that swallows it must not make it go on."""
    lines = [json.dumps(CLOSED), *[json.dumps(hard(16 if solver == "cp-sat" else 9))] * 3]
    (tmp_path / "states.jsonl").write_text("\n".join(lines))
    study = ("gap", "--problems", "states.jsonl", "-p", "fcfs", "--solver", solver, "--time-limit", 60, "-o", "out")
    process = start("watched.py", package, "during", *study)
    interrupt(process, tmp_path, at_work=True)
    _, states = report(tmp_path)
    assert [json.loads(state)["problem"]["work"] for state in states] == [[[3], [3]]]


@pytest.mark.more
def test_ctrl_c_in_the_moment_when_a_solver_finishes_is_heard(start, tmp_path):
    """Easy states are solved at once: Ctrl-C that meets a solver with its work done still ends the study."""
    (tmp_path / "states.jsonl").write_text("\n".join([json.dumps(EASY)] * 3))
    study = ("gap", "--problems", "states.jsonl", "-p", "fcfs", "--solver", "highs", "-o", "out")
    interrupt(start("watched.py", "highspy", "after", *study), tmp_path)
    _, states = report(tmp_path)
    assert len(states) <= 1


@pytest.mark.more
def test_an_interrupted_simulation_leaves_nothing(start, tmp_path):
    """Ctrl-C during a simulation: 130, no folder, nothing half-written."""
    shown, _ = interrupt(start("-m", "lbopt", "simulate", *FLEET, "-p", "slow.py:slowly", "-o", "out"), tmp_path)
    assert shown == ""
    assert {path.name for path in tmp_path.iterdir()} == {"slow.py", "watched.py", "there"}


@pytest.mark.more
@pytest.mark.parametrize("when", ["during", "after"])
def test_an_interrupted_exact_simulation_stops(start, tmp_path, when):
    """Ctrl-C during `simulate -p bf-io` ends the run, whether a decision is being solved or has just been."""
    columns = ("--prompt-column", "p", "--output-column", "o")
    if when == "during":  # the very first decision takes a minute
        (tmp_path / "own.csv").write_text("p,o\n" + "".join(f"{size},5\n" for size in hard(16)["work"]))
        words = (
            "own.csv",
            *columns,
            "-G",
            9,
            "-B",
            8,
            "--reveal-target",
            90,
            "-p",
            "bf-io:solver=cp-sat,time_limit=60",
        )
    else:
        words = (*FLEET, "-p", "bf-io:solver=cp-sat")
    process = start("watched.py", "ortools", when, "simulate", *words, "-o", "out")
    shown, _ = interrupt(process, tmp_path, at_work=when == "during")
    assert shown == ""
    assert not (tmp_path / "out").exists()
