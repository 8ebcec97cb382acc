"""Every engine gives the same rows; a worker that dies takes only its own task with it."""

import os
import sys

import pytest

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner import ENGINES, EngineError, Isolated, Joblib, Serial, Store, Summary, Task, make_engine, run_tasks

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
    return [
        (row.task.text, row.status, row.answer, row.failure and (row.failure.kind, row.failure.message), row.provenance)
        for row in rows
    ]


@pytest.mark.parametrize(
    "engine", [Joblib(jobs=2), Isolated(jobs=2), Isolated(reuse=True)], ids=["joblib", "isolated", "reuse"]
)
def test_every_engine_gives_the_rows_of_serial(tmp_path, engine):
    """Answers, failures and provenance, whatever the order in which they came."""
    if engine.name == "joblib":
        pytest.importorskip("joblib")
    assert rows_of(tmp_path / "other.sqlite", engine) == rows_of(tmp_path / "serial.sqlite", Serial())


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


def test_engines_by_name():
    assert make_engine("serial") == Serial()
    assert make_engine("joblib", jobs=3) == Joblib(jobs=3)
    assert make_engine("isolated", jobs=2, kill_after=1.5, reuse=True) == Isolated(jobs=2, kill_after=1.5, reuse=True)
    assert all(make_engine(name).name == name for name in ENGINES)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("jobblib", {}, r"engine is 'jobblib' \(did you mean 'joblib'\?\); expected one of serial, joblib, isolated"),
        ("dask", {}, r"engine is 'dask'; expected one of serial, joblib, isolated"),
        ("serial", {"jobs": 2}, "engine 'serial' has no option 'jobs'; it has none"),
        ("isolated", {"limit": 2}, "engine 'isolated' has no option 'limit'; it has jobs, kill_after, reuse"),
        ("isolated", {"jobs": 0}, "jobs is 0; expected an int of at least 1"),
        ("joblib", {"jobs": True}, "jobs is True; expected an int of at least 1"),
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
