"""Ctrl-C in a real process: exit code 130, and either a report of what is done or nothing."""

import json
import signal
import subprocess
import sys
import time

import pytest
from cli.terminal import environment

SLOW = """
import time
import numpy as np
def slowly(o):
    time.sleep(0.05)
    workers = np.full(o.sizes.size, -1)
    places = np.repeat(np.arange(o.free_slots.size), o.free_slots)[: o.num_admissible]
    workers[: places.size] = places
    return workers
"""


@pytest.fixture
def start(tmp_path):
    """A function that starts lbopt; whatever still runs at the end of the test is killed."""
    (tmp_path / "slow.py").write_text(SLOW)
    running = []

    def call(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "lbopt", *map(str, words)],
            cwd=tmp_path,
            env=environment(),
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


def interrupt(process, after, within):
    """Press Ctrl-C after so many seconds; returns exit code and standard error, or fails."""
    time.sleep(after)
    assert process.poll() is None, "it ended too early for this test"
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        pytest.fail(f"Ctrl-C was not heard within {within} s")
    return process.returncode, said


def test_an_interrupted_study_reports_what_is_done(start, tmp_path):
    """Ctrl-C while a user's router decides: 130, a report of the states so far, marked as interrupted."""
    process = start(
        "gap",
        "-n",
        300,
        "-G",
        3,
        "-B",
        4,
        "--states",
        150,
        "-p",
        "fcfs",
        "-p",
        "slow.py:slowly",
        "--no-long-runs",
        "-o",
        "out",
    )
    code, said = interrupt(process, after=4, within=15)
    assert code == 130, said
    assert "Traceback" not in said
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["interrupted"] is True
    states = (tmp_path / "out" / "steps.jsonl").read_text().splitlines()
    assert 0 < len(states) < 300
    assert "Interrupted." in (tmp_path / "out" / "report.html").read_text()
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_a_study_is_interrupted_while_its_solver_works(start, tmp_path):
    """Ctrl-C while HiGHS solves a state ends the study: a solver that swallows it must not make it go on."""
    process = start(
        "gap",
        "-n",
        2000,
        "--states",
        60,
        "-p",
        "fcfs",
        "--solver",
        "highs",
        "--time-limit",
        5,
        "--no-long-runs",
        "-o",
        "out",
    )
    code, said = interrupt(process, after=5, within=12)
    assert code == 130, said
    assert json.loads((tmp_path / "out" / "run.json").read_text())["interrupted"] is True


def test_an_interrupted_simulation_leaves_nothing(start, tmp_path):
    """Ctrl-C during a simulation: 130, no folder, nothing half-written."""
    process = start("simulate", "-n", 300, "-G", 3, "-B", 4, "-p", "slow.py:slowly", "-o", "out")
    code, said = interrupt(process, after=3, within=10)
    assert code == 130, said
    assert "Traceback" not in said
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["slow.py"]


def test_an_interrupted_exact_simulation_stops(start, tmp_path):
    """Ctrl-C during `simulate -p bf-io` ends the run: the solver in the middle of a decision must not swallow it."""
    process = start("simulate", "-n", 3000, "-p", "bf-io", "-o", "out")
    code, said = interrupt(process, after=4, within=10)
    assert code == 130, said
    assert not (tmp_path / "out").exists()
