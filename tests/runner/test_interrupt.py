"""kill -9 and Ctrl-C in real processes: what had ended is stored, and a rerun does the rest."""

import os
import signal
import time
from contextlib import chdir

import pytest
from runner.processes import RUN, alive, wait_for_rows, wait_until

from lbopt.runner import Store, Summary, Task, run_tasks

pytestmark = pytest.mark.alone

ENGINES = ["Serial()", "Joblib(jobs=2)", "Isolated(jobs=2, reuse=True)", "Dask(jobs=2)"]

#: Commits large rows as fast as it can.
FAST = """
from lbopt.runner import *
tasks = [Task("runner.jobs:big", {"x": x}, None) for x in range(3_000)]
with Store("store.sqlite") as store:
    run_tasks(tasks, store)
"""

DEAF = """
from lbopt.runner import *
with Store("store.sqlite") as store:
    run_tasks([Task("runner.jobs:deaf", {"pid_file": "ids"}, None)], store, engine=Isolated())
"""


def need(engine):
    """Skip the test where the package of an engine is absent."""
    if engine.startswith(("Joblib", "Dask")):
        pytest.importorskip("joblib" if engine.startswith("Joblib") else "distributed")


def goes_on(folder):
    """Run the rest in this process: four answers were there and are not computed again, and no failure was."""
    tasks = [Task("runner.jobs:gated", {"x": x}, None) for x in range(10)]
    (folder / "open").touch()
    with chdir(folder), Store("store.sqlite") as store:
        assert {row.answer for row in store.rows()} == {0, 1, 2, 3}
        assert run_tasks(tasks, store) == Summary(skipped=4, computed=6)
        assert [store.answer(task) for task in tasks] == list(range(10))
    calls = [int(line) for line in (folder / "calls.txt").read_text().split()]
    assert [calls.count(x) for x in range(4)] == [1] * 4
    assert max(calls.count(x) for x in range(10)) <= 2  # once more: those that were under way


@pytest.mark.some(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", ["kill -9", "ctrl-c"])
def test_a_run_goes_on_where_it_was_stopped(tmp_path, begin, engine, ending):
    """No stored task is run again, none is lost, and Ctrl-C ends as KeyboardInterrupt without leaving a lock."""
    need(engine)
    process = begin(RUN, engine)
    wait_for_rows(tmp_path / "store.sqlite", 4)
    if ending == "kill -9":
        process.kill()
        process.wait()
    else:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGINT
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert [path.name for path in tmp_path.iterdir() if "lock" in path.name or "journal" in path.name] == []
    goes_on(tmp_path)


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", [ENGINES[1], ENGINES[3]])
def test_the_terminals_ctrl_c_reaches_the_whole_group(tmp_path, begin, engine):
    """As from a keyboard: parent and workers of a pool get it at once."""
    need(engine)
    process = begin(RUN, engine)
    wait_for_rows(tmp_path / "store.sqlite", 4)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    goes_on(tmp_path)


@pytest.mark.more
def test_kill_9_never_leaves_half_a_row(tmp_path, begin):
    """Killed again and again while it writes as fast as it can: whatever is there is whole, and nothing gets less."""
    path = tmp_path / "store.sqlite"
    rows, size = 0, 20_000  # more than an empty store has, whose table may not be committed yet
    for wait in (0.003, 0.011, 0.017, 0.031, 0.05):
        process = begin(FAST)
        wait_until(lambda size=size: path.exists() and path.stat().st_size > size)
        time.sleep(wait)
        process.kill()
        process.wait()
        with Store(path, read_only=True) as store:
            now = list(store.rows())
        assert all(row.answer == [row.task.parameters["x"]] * 8_000 for row in now)
        assert len(now) >= rows
        rows, size = len(now), path.stat().st_size
    with Store(path) as store:  # opening to write checks every page
        assert len(store) == rows > 0


#: Dies in the middle of a transaction of which a part is in the file already.
TORN = """
import os, signal
from lbopt.runner import *
store = Store("store.sqlite")
run_tasks([Task("runner.jobs:big", {"x": 0}, None)], store)
store._connection.execute("PRAGMA cache_size=2")
store._connection.execute("BEGIN IMMEDIATE")
for x in range(1, 50):
    run_tasks([Task("runner.jobs:big", {"x": x}, None)], store)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.more
@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("page_count", [None, 10_000])
def test_what_a_killed_writer_left_half_written_is_taken_back(tmp_path, begin, read_only, page_count):
    """By a reader as by a writer; also where the header is ahead of the file."""
    assert begin(TORN).wait(20) == -signal.SIGKILL
    path = tmp_path / "store.sqlite"
    assert (tmp_path / "store.sqlite-journal").exists()
    if page_count is not None:
        with path.open("r+b") as stream:
            stream.seek(28)
            stream.write(page_count.to_bytes(4, "big"))
    with Store(path, read_only=read_only) as store:
        assert [row.answer for row in store.rows()] == [[0] * 8_000]
    assert not (tmp_path / "store.sqlite-journal").exists()


@pytest.mark.some(1)
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_outlives_its_parent(tmp_path, begin, ending):
    """However the parent ends, a deaf child and the child's child are gone soon after."""
    process = begin(DEAF)
    wait_until((tmp_path / "ids").exists)
    process.send_signal(ending)
    process.communicate(timeout=20)
    wait_until(lambda: not any(map(alive, (tmp_path / "ids").read_text().split())), within=5)
    with Store(tmp_path / "store.sqlite") as store:
        assert len(store) == 0
