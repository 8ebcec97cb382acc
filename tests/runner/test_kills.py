"""kill -9 at any moment, hundreds of times: nothing stored is lost or run again, and the results are the same bytes.

The run says a key on a pipe when the store has taken it, so what was committed is known from outside the store. Its
tasks are tiny: most of the time something is being committed. Every task also leaves a line in a log when it begins.
"""

import os
import random
import re
import signal
import sqlite3
import time

import pytest
from runner.processes import start

from lbopt.runner import Store, Task, make_engine, run_tasks

#: Runs `count` tasks on an engine and says each key as soon as it is stored.
RUN = """
import os, sys
from lbopt.runner import *
tasks = [Task("runner.jobs:logged", {"x": x, "log": "calls.txt"}, None) for x in range(int(sys.argv[1]))]
def told(summary, outcome):
    if outcome is not None:
        os.write(1, outcome.key.encode() + b"\\n")
if __name__ == "__main__":
    with Store("store.sqlite") as store:
        run_tasks(tasks, store, engine=sys.argv[2], progress=told)
"""


def contents(path):
    """Every row, by SQLite alone: nothing of the store's own code."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return {}
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = connection.execute("SELECT key, task, status, answer, attempts FROM results").fetchall()
    finally:
        connection.close()
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row[1:] for row in found}


#: What is said of a stored row.
KEY = re.compile(r"[0-9a-f]+")


def killed(folder, draw, count, engine):
    """Run until a random moment, kill, and return the keys that were said to be stored."""
    process = start(RUN, count, engine, cwd=folder)
    shown = b""
    if draw.random() < 0.2:  # at a moment of the start: importing, opening, making the table
        time.sleep(draw.uniform(0.0, 0.3))
    else:  # at a moment of the work: after so many rows, and a little more
        wanted = 1 + int(draw.expovariate(1 / 30))
        while shown.count(b"\n") < wanted and (chunk := os.read(process.stdout.fileno(), 1 << 16)):
            shown += chunk
        time.sleep(draw.uniform(0.0, 0.002))
    process.kill()
    rest, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed; it needs more tasks"
    assert said == "" or "resource_tracker" in said  # loky's own witness of the murder
    lines = (shown.decode() + rest).split("\n")[:-1]  # a torn last line was never said
    return {line for line in lines if KEY.fullmatch(line)}  # a worker that is being started then says a traceback, too


def attacked(folder, kills, count, engines, seed):
    """Kill a run again and again, look after each, finish it, and return how many rows stood there before that."""
    draw = random.Random(seed)
    path = folder / "store.sqlite"
    said, stored, lines = set(), {}, 0
    for number in range(kills):
        new = killed(folder, draw, count, engines[number % len(engines)])
        assert not new & said, "a stored task was run and stored again"
        said |= new
        now = contents(path) if path.exists() and path.stat().st_size else {}
        assert said <= now.keys(), "a stored row is lost"
        assert stored.items() <= now.items(), "a stored row has changed"
        begun = (folder / "calls.txt").read_text().split() if (folder / "calls.txt").exists() else []
        again = {row[2] for row in stored.values()} & set(begun[lines:])
        assert not again, "a task was run again that was stored before this run began"
        stored, lines = now, len(begun)
    return stored


def undisturbed(folder, count):
    """The rows of a run that nobody disturbs, with the same log."""
    tasks = [Task("runner.jobs:logged", {"x": x, "log": "calls.txt"}, None) for x in range(count)]
    with Store(folder / "other.sqlite") as store:
        run_tasks(tasks, store)
    return tasks, contents(folder / "other.sqlite")


def survives(folder, monkeypatch, *, kills, count, engines, seed):
    monkeypatch.chdir(folder)
    before = attacked(folder, kills, count, engines, seed)
    tasks, easy = undisturbed(folder, count)
    with Store(folder / "store.sqlite") as store:
        summary = run_tasks(tasks, store, engine=make_engine("serial"))
    assert (summary.skipped, summary.computed) == (len(before), count - len(before))
    assert contents(folder / "store.sqlite") == easy
    assert len(easy) == count
    return len(before)


@pytest.mark.alone
@pytest.mark.more
def test_ten_kills(tmp_path, monkeypatch):
    assert survives(tmp_path, monkeypatch, kills=10, count=1_000, engines=["serial"], seed=1) > 10


@pytest.mark.alone
@pytest.mark.more
def test_kills_with_a_pool(tmp_path, monkeypatch):
    pytest.importorskip("joblib")
    survives(tmp_path, monkeypatch, kills=3, count=400, engines=["joblib:jobs=2"], seed=2)


@pytest.mark.slow
def test_three_hundred_kills(tmp_path, monkeypatch, record_property):
    """Three minutes on two cores; every twentieth run is one of a pool."""
    began = time.monotonic()
    engines = ["serial"] * 19 + ["joblib:jobs=2"]
    rows = survives(tmp_path, monkeypatch, kills=300, count=15_000, engines=engines, seed=3)
    print(f"300 kills: {rows} rows stood before the last run, {time.monotonic() - began:.0f} s")
    assert rows > 1_000
