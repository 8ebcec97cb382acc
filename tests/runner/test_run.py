"""`run_tasks`: only what is missing is computed, failures are tried again, and progress is told."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lbopt.exceptions import InputError
from lbopt.runner import EngineError, Outcome, Serial, Store, Summary, Task, run_tasks


def tasks_of(tmp_path, numbers):
    return [Task("runner.jobs:logged", {"x": x, "log": str(tmp_path / "calls.txt")}, None) for x in numbers]


def calls(tmp_path):
    path = tmp_path / "calls.txt"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_rerun_computes_what_is_missing(store, tmp_path):
    assert run_tasks(tasks_of(tmp_path, range(3)), store) == Summary(computed=3)
    assert run_tasks(tasks_of(tmp_path, range(5)), store) == Summary(computed=2, skipped=3)
    assert run_tasks(tasks_of(tmp_path, range(5)), store) == Summary(skipped=5)
    assert calls(tmp_path) == [0, 1, 2, 3, 4]
    assert [store.answer(task) for task in tasks_of(tmp_path, range(5))] == [0, 1, 2, 3, 4]


def test_equal_tasks_are_run_once(store, tmp_path):
    assert run_tasks(tasks_of(tmp_path, [1, 1, 2, 1]), store) == Summary(computed=2)
    assert calls(tmp_path) == [1, 2]
    assert run_tasks([], store) == Summary()


def test_a_failure_is_tried_again_until_it_is_an_answer(store, tmp_path):
    there = tmp_path / "there"
    task = Task("runner.jobs:fails_until", {"there": str(there)}, None)
    assert run_tasks([task], store) == Summary(failed=1)
    failure = store.get(task).failure
    assert (failure.kind, failure.exception, failure.message) == ("raised", "ArithmeticError", "not yet: \\udcff\0")
    assert "jobs.py" in failure.traceback
    assert "execute.py" not in failure.traceback
    assert run_tasks([task], store, retry_failures=False) == Summary(skipped=1)
    assert run_tasks([task], store) == Summary(failed=1)
    assert store.get(task).attempts == 2
    there.touch()
    assert run_tasks([task], store) == Summary(computed=1)
    assert run_tasks([task], store) == Summary(skipped=1)
    assert (store.answer(task), store.get(task).attempts) == ("done", 3)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no_such_package.part:f", "there is no module 'no_such_package'"),
        ("runner.no_such_module:f", "there is no module 'runner.no_such_module'"),
        ("runner.jobs:no_such_name", "'no_such_name' does not exist in module 'runner.jobs'"),
        ("runner.jobs:sys", "'sys' is not a function in module 'runner.jobs'"),
    ],
)
def test_a_function_that_does_not_exist_is_a_failure(store, function, said):
    task = Task(function, {}, None)
    assert run_tasks([task], store) == Summary(failed=1)
    failure = store.get(task).failure
    assert failure.exception == "InputError"
    assert said in failure.message


def test_a_module_that_lacks_another_is_told_apart(store, tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    task = Task("needy:f", {}, None)
    run_tasks([task], store)
    assert store.get(task).failure.exception == "ModuleNotFoundError"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("set", "the result is a set"),
        ("nan", r"the result\['a'\]\[1\] is nan"),
        ("key", r"the result\['a'\] has the key 1 of type int"),
        ("complex", r"the result\[0\] is a complex"),
        ("digits", "the result cannot be written as JSON"),
        ("loop", "inside itself"),
    ],
)
def test_a_result_that_json_does_not_hold_is_a_failure(store, what, said):
    task = Task("runner.jobs:unstorable", {"what": what}, None)
    assert run_tasks([task], store) == Summary(failed=1)
    failure = store.get(task).failure
    assert failure.kind == "unstorable"
    assert re.search(said, failure.message), failure.message


@pytest.mark.parametrize("how", ["exit", "generator", "unspeakable"])
def test_a_task_cannot_end_the_run(store, how):
    task = Task("runner.jobs:leaves", {"how": how}, None)
    assert run_tasks([task], store) == Summary(failed=1)
    assert store.get(task).failure.kind == "raised"


@pytest.mark.parametrize("name", ["swallows", "interrupted_twice"])
def test_a_task_that_swallows_ctrl_c_has_no_answer(store, tmp_path, name):
    """What it returned or raised is of a half-done task; the run stops, and what was before it is kept."""
    half = Task(f"runner.jobs:{name}", {}, None)
    with pytest.raises(KeyboardInterrupt):
        run_tasks([*tasks_of(tmp_path, [1]), half, *tasks_of(tmp_path, [2])], store)
    assert store.get(half) is None
    assert calls(tmp_path) == [1]
    assert store.answer(tasks_of(tmp_path, [1])[0]) == 1


def test_progress_is_told(store, tmp_path):
    """Once before the first task, and after each that is stored."""
    heard = []
    run_tasks(tasks_of(tmp_path, [1]), store)
    run_tasks(
        [*tasks_of(tmp_path, [1, 2]), Task("runner.jobs:leaves", {"how": "exit"}, None)],
        store,
        progress=lambda summary, outcome: heard.append((summary, outcome and outcome.status, len(store))),
    )
    assert heard == [
        (Summary(skipped=1, remaining=2), None, 1),
        (Summary(skipped=1, computed=1, remaining=1), "done", 2),
        (Summary(skipped=1, computed=1, failed=1), "failed", 3),
    ]


def test_whoever_listens_may_stop_the_run(store, tmp_path):
    def enough(summary, outcome):
        if summary.computed == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run_tasks(tasks_of(tmp_path, range(5)), store, progress=enough)
    assert calls(tmp_path) == [0, 1]
    assert run_tasks(tasks_of(tmp_path, range(5)), store) == Summary(computed=3, skipped=2)


def test_a_run_in_a_thread(tmp_path):
    """Where Ctrl-C never comes, its handlers are left alone."""

    def work():
        with Store(tmp_path / "store.sqlite") as store:
            return run_tasks(tasks_of(tmp_path, range(2)), store)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == Summary(computed=2)


def test_the_caller_adds_to_the_provenance(store, tmp_path):
    run_tasks(tasks_of(tmp_path, [1]), store, provenance={"solver": "highspy 1.13.1"})
    (row,) = store.rows()
    assert row.provenance["engine"] == "serial"
    assert row.provenance["extra"] == {"solver": "highspy 1.13.1"}
    with pytest.raises(InputError, match="provenance"):
        run_tasks(tasks_of(tmp_path, [2]), store, provenance={"solver": sys})


def test_an_engine_that_answers_for_another_task_is_stopped(store, tmp_path):
    class Wrong(Serial):
        def run(self, tasks):
            yield Outcome(key="another", answer="1", seconds=0.0)

    with pytest.raises(EngineError, match="which it was not given"):
        run_tasks(tasks_of(tmp_path, [1]), store, engine=Wrong())
    assert len(store) == 0


def test_an_engine_that_the_system_refuses_something(store, tmp_path):
    """One sentence; what had ended is stored. A pipe that closes on whoever listens is not the engine's affair."""

    class Refused(Serial):
        def run(self, tasks):
            yield from Serial().run(tasks[:1])
            raise OSError(28, "No space left on device", "/tmp/x")

    with pytest.raises(EngineError, match=r"engine 'serial' cannot go on, .*No space left on device: '/tmp/x'; what"):
        run_tasks(tasks_of(tmp_path, [1, 2]), store, engine=Refused())
    assert len(store) == 1

    def closed(summary, outcome):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_tasks(tasks_of(tmp_path, [1, 2]), store, progress=closed)


def test_importing_the_runner_is_light(begin):
    """Neither joblib, Dask nor NumPy is imported before it is needed."""
    code = (
        "import sys, lbopt.runner; print([n for n in ('joblib', 'distributed', 'numpy', 'numba') if n in sys.modules])"
    )
    shown, said = begin(code).communicate()
    assert (shown.strip(), said) == ("[]", "")
