"""Every engine gives the same rows; a worker that dies takes only its own task with it."""

import os
import sqlite3
import sys

import pytest

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner import (
    ENGINES,
    Dask,
    EngineError,
    Isolated,
    Joblib,
    Serial,
    Store,
    Summary,
    Task,
    make_engine,
    run_tasks,
)

MIXED = [
    *[Task("runner.jobs:double", {"x": x}, x) for x in range(4)],
    Task("runner.jobs:echo", {"a b": [1, 1.0, True, None, -0.0], "ü": {"deep": "\ud83d"}}, None),
    Task("runner.jobs:echo", {"tuple": (1, 2)}, 2**80),
    Task("runner.jobs:big", {"x": 1.5}, None),
    Task("runner.jobs:unstorable", {"what": "set"}, None),
    Task("runner.jobs:leaves", {"how": "exit"}, None),
    Task("runner.jobs:no_such_name", {}, None),
]


def rows_of(path, engine):
    with Store(path) as store:
        assert run_tasks(MIXED, store, engine=engine) == Summary(computed=7, failed=3)
        rows = list(store.rows())
    assert {row.provenance.pop("engine") for row in rows} == {engine.name}
    connection = sqlite3.connect(path)
    written = connection.execute("SELECT answer FROM results ORDER BY key").fetchall()  # the bytes, read by nobody
    connection.close()
    return written, [
        (row.task.text, row.status, row.answer, row.failure and (row.failure.kind, row.failure.message), row.provenance)
        for row in rows
    ]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "engine",
    [Joblib(jobs=2), Joblib(jobs=8), Isolated(jobs=2), Isolated(reuse=True), Dask(jobs=2)],
    ids=["joblib", "joblib of 8", "isolated", "reuse", "dask"],
)
def test_every_engine_gives_the_rows_of_serial(tmp_path, engine):
    """Answers, failures and provenance, whatever the order in which they came."""
    if engine.name in ("joblib", "dask"):
        pytest.importorskip("distributed" if engine.name == "dask" else "joblib")
    assert rows_of(tmp_path / "other.sqlite", engine) == rows_of(tmp_path / "serial.sqlite", Serial())


@pytest.mark.alone
def test_a_worker_of_joblib_that_dies_is_found(store):
    """The guilty task fails; its neighbours and all others get their answers."""
    pytest.importorskip("joblib")
    tasks = [Task("runner.jobs:dies_or", {"x": x, "bad": 2}, None) for x in range(6)]
    assert run_tasks(tasks, store, engine=Joblib(jobs=2)) == Summary(computed=5, failed=1)
    (row,) = store.rows("failed")
    assert row.task == tasks[2]
    assert row.failure.kind == "died"
    assert "by SIGSEGV" in row.failure.message
    assert "in dies_or" in row.failure.traceback  # faulthandler says where
    assert row.provenance["engine"] == "joblib"
    assert run_tasks(tasks, store, engine=Joblib(jobs=2)) == Summary(failed=1, skipped=5)


def test_a_pool_that_never_begins_is_an_error(store, monkeypatch):
    """Where the processes die of themselves there is nobody to blame, and no endless new beginning."""
    pytest.importorskip("joblib")
    monkeypatch.setattr("lbopt.runner.engines.joblib_pool._marked", _die)
    with pytest.raises(EngineError, match="die before a task begins; engine 'serial' needs none"):
        run_tasks(MIXED[:2], store, engine=Joblib(jobs=2))
    assert len(store) == 0


def _die(task, marks):
    os._exit(1)


def test_joblib_is_asked_for_when_it_is_absent(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'joblib>=1.5'"):
        run_tasks(MIXED, store, engine="joblib")


def test_dask_is_asked_for_when_it_is_absent(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'lbopt\[dask\]'"):
        run_tasks(MIXED, store, engine="dask")


def test_engines_by_name():
    assert make_engine("serial") == Serial()
    assert make_engine("joblib", jobs=3) == Joblib(jobs=3)
    assert make_engine("isolated", jobs=2, kill_after=1.5, reuse=True) == Isolated(jobs=2, kill_after=1.5, reuse=True)
    assert make_engine("dask", jobs=2) == Dask(jobs=2)
    assert all(make_engine(name).name == name for name in ENGINES)


@pytest.mark.parametrize(
    ("spec", "engine"),
    [
        ("serial:", Serial()),
        ("joblib:jobs=8", Joblib(jobs=8)),
        ("joblib:jobs=none", Joblib()),
        ("isolated:jobs=2,kill_after=1.5,reuse=yes", Isolated(jobs=2, kill_after=1.5, reuse=True)),
        ("dask:jobs=3", Dask(jobs=3)),
        ("dask://node-17:8786", Dask(address="node-17:8786")),
        ("dask://[::1]:8786/", Dask(address="[::1]:8786")),
    ],
)
def test_engines_as_users_write_them(spec, engine):
    assert make_engine(spec) == engine


def test_options_from_python_go_first():
    assert make_engine("joblib:jobs=8", jobs=2) == Joblib(jobs=2)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("jobblib", {}, r"unknown engine 'jobblib': did you mean joblib\? \(also dask://host:port\)"),
        ("x", {}, "unknown engine 'x': known: serial, joblib, isolated, dask"),
        ("", {}, "unknown engine ''"),
        ("joblib:job=8", {}, "engine 'joblib' has no option 'job'; it takes jobs"),
        ("joblib:jobs=many", {}, "engine 'joblib': jobs is 'many'; expected a number"),
        ("joblib:jobs=0", {}, "jobs is 0; expected a whole number of 1 or more"),
        ("serial:jobs=2", {}, "engine 'serial' has no option 'jobs'; it takes none"),
        ("dask://node", {}, "the Dask scheduler is 'node'; expected host:port, as in dask://localhost:8786"),
        ("dask://node:x", {}, "the Dask scheduler is 'node:x'; expected host:port"),
        ("dask://:8786", {}, "the Dask scheduler is ':8786'; expected host:port"),
        ("dask://node:8786/?a=1", {}, r"the Dask scheduler is 'node:8786/\?a=1'; expected host:port"),
        ("dask://node:8786", {"jobs": 2}, "has the option jobs, 2, and the scheduler node:8786"),
        ("serial", {"jobs": 2}, "engine 'serial' has no option 'jobs'; it takes none"),
        ("isolated", {"limit": 2}, "engine 'isolated' has no option 'limit'; it takes jobs, kill_after, reuse"),
        ("isolated", {"jobs": 0}, "jobs is 0; expected a whole number of 1 or more"),
        ("joblib", {"jobs": True}, "jobs is True; expected a whole number of 1 or more"),
        ("isolated", {"kill_after": 0}, "kill_after is 0; expected seconds, more than 0"),
        ("isolated", {"kill_after": "1"}, "kill_after is '1'; expected seconds, more than 0"),
    ],
)
def test_an_engine_that_cannot_be_had(store, name, options, said):
    """Said before anything is run."""
    with pytest.raises(InputError, match=said):
        make_engine(name, **options)
    if not options:
        with pytest.raises(InputError, match=said):
            run_tasks(MIXED, store, engine=name)
