"""What a store keeps, what it replaces, and what it tells."""

import json
import os
import signal
import sqlite3

import pytest

from lbopt.exceptions import InputError
from lbopt.runner import Failure, Outcome, Store, StoreError, Task
from lbopt.runner.execute import execute

TASK = Task("runner.jobs:double", {"x": 21}, 5)


def failed(task, message="no"):
    failure = Failure(kind="raised", exception="ValueError", message=message, traceback="where")
    return Outcome(key=task.key, failure=failure, seconds=0.5)


def done(task, answer):
    return Outcome(key=task.key, answer=json.dumps(answer), seconds=0.25)


def test_a_row_holds_all_that_is_known(store):
    assert store.put(TASK, execute(TASK), {"engine": "by hand", "extra": {"solver": "none"}})
    row = store.get(TASK)
    assert row.task == TASK
    assert row.task.parameters == {"x": 21}
    assert (row.status, row.answer, row.failure, row.attempts) == ("done", {"twice": 42, "seed": 5}, None, 1)
    assert row.seconds >= 0
    assert row.finished.endswith("Z")
    known = {"lbopt", "python", "system", "machine", "engine", "extra"}
    assert known <= set(row.provenance) <= known | {"numpy", "numba"}  # no host, no path


def test_an_answer_is_final(store):
    """Neither a failure nor another answer takes its place."""
    assert store.put(TASK, done(TASK, 1))
    assert not store.put(TASK, failed(TASK))
    assert not store.put(TASK, done(TASK, 2))
    row = store.get(TASK)
    assert (row.status, row.answer, row.attempts, row.failure) == ("done", 1, 1, None)


def test_a_failure_gives_way(store):
    """Attempts are counted, the last failure stays, and an answer leaves nothing of it."""
    for message in ("first", "second"):
        assert store.put(TASK, failed(TASK, message))
    row = store.get(TASK)
    assert (row.status, row.answer, row.attempts) == ("failed", None, 2)
    assert row.failure == Failure(kind="raised", exception="ValueError", message="second", traceback="where")
    with pytest.raises(StoreError, match=r"it failed \(raised, attempt 2\): ValueError second"):
        store.answer(TASK)
    assert store.put(TASK, done(TASK, None))
    row = store.get(TASK)
    assert (row.status, row.answer, row.failure, row.attempts) == ("done", None, None, 3)
    assert store.answer(TASK) is None


def test_what_is_not_there(store):
    assert store.get(TASK) is None
    assert list(store.rows()) == []
    assert len(store) == 0
    with pytest.raises(StoreError, match="it was not run"):
        store.answer(TASK)
    with pytest.raises(InputError, match="'done', 'failed' or None"):
        list(store.rows("good"))


def test_rows_come_in_the_order_of_keys_page_by_page(store):
    tasks = [Task("m:f", {"x": x}, None) for x in range(600)]
    store._connection.execute("PRAGMA synchronous=OFF")  # only for the speed of this test
    for place, task in enumerate(tasks):
        store.put(task, failed(task) if place % 3 == 0 else done(task, place))
    keys = sorted(task.key for task in tasks)
    assert [row.task.key for row in store.rows()] == keys
    assert len(list(store.rows("failed"))) == 200
    assert len(list(store.rows("done"))) == 400
    assert len(store) == 600
    assert sorted(store.statuses()) == keys


def test_an_outcome_belongs_to_its_task(store):
    other = Task("runner.jobs:double", {"x": 22}, 5)
    with pytest.raises(InputError, match="was given as that of"):
        store.put(TASK, done(other, 1))
    with pytest.raises(ValueError, match="not both"):
        Outcome(key=TASK.key, seconds=1.0)


def test_odd_texts_are_kept(store):
    """Half characters, zeros and overlong texts of a failure do not stand in the way of storing it."""
    store.put(TASK, failed(TASK, "half \ud83d, zero \0, " + "long " * 10_000))
    message = store.get(TASK).failure.message
    assert message.startswith("half \\ud83d, zero \0, long ")
    assert len(message) == 2_000


def test_ctrl_c_waits_until_the_row_is_written(store):
    """Pressed in the middle of the statement that stores, it acts once the row is there."""
    store._connection.set_trace_callback(lambda statement: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        store.put(TASK, done(TASK, 1))
    store._connection.set_trace_callback(None)
    assert store.answer(TASK) == 1
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # the handler from before is back


def test_a_row_proves_itself(store):
    """The text beside each key hashes to it, and plain SQL reads parameters and answers."""
    store.put(TASK, execute(TASK))
    with sqlite3.connect(f"{store.path.as_uri()}?mode=ro", uri=True) as plain:
        task, x, twice = plain.execute(
            "SELECT task, json_extract(task, '$.parameters.x'), json_extract(answer, '$.twice') FROM results"
        ).fetchone()
    plain.close()
    assert Task.from_text(task).key == TASK.key
    assert (x, twice) == (21, 42)


def test_a_closed_store_says_so(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.get(TASK)
    with pytest.raises(StoreError, match="closed"):
        store.put(TASK, done(TASK, 1))
