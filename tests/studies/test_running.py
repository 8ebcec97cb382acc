"""`run_stored`: what a study gets of its tasks, with and without a store, interrupted, and without running."""

import inspect
from dataclasses import dataclass, field

import pytest

from lbopt.exceptions import InputError
from lbopt.runner import Store, StoreError, Task
from lbopt.studies.running import RunTasks, of_tasks, run_stored


class Told:
    """A bar that remembers; at `stop` units somebody presses Ctrl-C."""

    def __init__(self, stop=None):
        self.stages, self.units, self._stop = [], 0, stop

    def begin(self, what, total):
        self.stages.append((what, total))

    def advance(self, units=1):
        self.units += units
        if self.units == self._stop:
            raise KeyboardInterrupt


def tasks_of(folder, numbers):
    return [Task("runner.jobs:logged", {"x": x, "log": str(folder / "calls.txt")}, None) for x in numbers]


def calls(folder):
    return [int(line) for line in (folder / "calls.txt").read_text().split()]


@pytest.mark.parametrize("engine", ["serial", "joblib:jobs=2", "isolated:jobs=2"])
def test_a_store_is_filled_and_goes_on(tmp_path, engine):
    path, told = tmp_path / "s.sqlite", Told()
    done = run_stored(tasks_of(tmp_path, [3, 1, 3]), store=path, engine=engine, progress=told, what="counting")
    assert (list(done.answers.values()), done.complete, done.interrupted, done.notes) == ([3, 1], True, False, ())
    assert (told.stages, told.units) == ([("counting", 2)], 2)
    done = run_stored(tasks_of(tmp_path, [1, 2, 3]), store=path, engine=engine)
    assert list(done.answers.values()) == [1, 2, 3]
    assert sorted(calls(tmp_path)) == [1, 2, 3]


def test_without_a_store_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert list(run_stored(tasks_of(tmp_path, range(3))).answers.values()) == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["calls.txt"]


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_keeps_what_has_ended(tmp_path, kept):
    path = tmp_path / "s.sqlite" if kept else None
    done = run_stored(tasks_of(tmp_path, range(5)), store=path, progress=Told(stop=2))
    assert (list(done.answers.values()), done.interrupted, done.complete) == ([0, 1], True, False)
    assert [task.parameters["x"] for task in done.missing] == [2, 3, 4]
    (said,) = done.notes
    how = f"; {path} keeps them, and the same command goes on" if kept else ", and are not kept: there is no store"
    assert said == f"interrupted: 2 of 5 tasks have ended{how}"
    if kept:
        assert run_stored(tasks_of(tmp_path, range(5)), store=path).complete
        assert calls(tmp_path) == [0, 1, 2, 3, 4]


def test_failures_are_said_one_by_one(tmp_path):
    tasks = [Task("runner.jobs:leaves", {"how": "exit"}, seed) for seed in range(13)]
    done = run_stored([*tasks_of(tmp_path, [1]), *tasks])
    assert (list(done.answers.values()), list(done.failures)) == ([1], [task.key for task in tasks])
    assert len(done.notes) == 11
    assert done.notes[0].startswith('leaves(how="exit", seed=0) failed (raised): TypeError ')
    assert done.notes[-1] == "3 more tasks failed; `lbopt export` lists them"


def test_a_failure_without_an_exception(tmp_path):
    done = run_stored([Task("runner.jobs:dies", {"how": "exit"}, None)], engine="isolated")
    assert done.notes == (
        'dies(how="exit") failed (died): the process of the task ended with exit code 3 and gave no answer',
    )


def test_collecting_runs_nothing(tmp_path):
    path, told = tmp_path / "s.sqlite", Told()
    run_stored(tasks_of(tmp_path, range(3)), store=path)
    before = path.read_bytes()
    with Store(path):  # a run that goes on is in nobody's way
        done = run_stored(tasks_of(tmp_path, range(8)), store=path, collect_only=True, progress=told)
    assert (list(done.answers.values()), told.units, done.interrupted) == ([0, 1, 2], 3, False)
    (said,) = done.notes
    assert said.startswith(f"5 of 8 results are not in {path}: logged(log=")
    assert said.endswith("and 2 more")
    assert (path.read_bytes(), calls(tmp_path)) == (before, [0, 1, 2])


def test_what_cannot_be_asked(tmp_path):
    with pytest.raises(InputError, match="needs the store that holds the results"):
        run_stored([], collect_only=True)
    with pytest.raises(StoreError, match="there is no store at"):
        run_stored([], store=tmp_path / "s.sqlite", collect_only=True)
    with pytest.raises(InputError, match="unknown engine 'seriel': did you mean serial"):
        run_stored([], store=tmp_path / "s.sqlite", engine="seriel")
    assert list(tmp_path.iterdir()) == []


@dataclass
class Sum:
    answers: list[int] = field(default_factory=list)
    seconds: float = -1.0


@of_tasks("adding")
def add(config: list[Task], run: RunTasks) -> Sum:
    """Add nothing up."""
    return Sum(list(run(config).answers.values()))


def test_a_study_of_tasks_has_store_engine_and_clock(tmp_path):
    """They are the decorator's; tasks, outcome, name and first sentence are the study's."""
    path, told = tmp_path / "s.sqlite", Told()
    first = add(tasks_of(tmp_path, [2, 1]), told, store=path, engine="joblib:jobs=2")
    assert (first.answers, told.stages, told.units) == ([2, 1], [("adding", 2)], 2)
    assert 0 <= first.seconds < 60
    assert add(tasks_of(tmp_path, [1, 2]), store=path, collect_only=True).answers == [1, 2]
    assert sorted(calls(tmp_path)) == [1, 2]
    names = ["config", "progress", "store", "engine", "collect_only"]
    assert list(inspect.signature(add).parameters) == names
    assert (add.__name__, add.__module__) == ("add", __name__)
    assert add.__doc__.startswith("Add nothing up.\n\nParameters\n---")
    assert all(f"\n{name}\n    " in add.__doc__ for name in names)


def test_a_value_that_a_task_refuses_is_no_failure_of_the_study(tmp_path):
    with pytest.raises(InputError, match="expected"):
        add([Task("runner.jobs:refuses", {}, None)])
