"""`collect`: what there is and what there is not, and nothing is run."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.runner import Outcome, Store, Task, collect, run_tasks
from lbopt.runner.run import called, named


def task_of(x):
    return Task("runner.jobs:double", {"x": x}, None)


def test_answers_failures_and_what_is_missing(tmp_path):
    """In the order of the tasks that were given, each once."""
    bad = Task("runner.jobs:leaves", {"how": "exit"}, None)
    with Store(tmp_path / "store.sqlite") as store:
        run_tasks([task_of(1), bad, task_of(2)], store)
    with Store(tmp_path / "store.sqlite", read_only=True) as store:
        found = collect([task_of(3), task_of(2), bad, task_of(1), task_of(3)], store)
        assert len(store) == 3
    assert list(found.answers) == [task_of(2).key, task_of(1).key]
    assert found.answers[task_of(2).key] == {"twice": 4, "seed": None}
    assert (list(found.failures), found.failed) == ([bad.key], (bad,))
    assert found.failures[bad.key].exception == "SystemExit"
    assert found.missing == (task_of(3),)
    assert len(found) == 4


@settings(max_examples=30)
@given(there=st.sets(st.integers(0, 9)), asked=st.lists(st.integers(0, 9)))
def test_every_task_is_in_one_place(tmp_path_factory, there, asked):
    with Store(tmp_path_factory.mktemp("s") / "store.sqlite") as store:
        for x in there:
            store.put(task_of(x), Outcome(key=task_of(x).key, answer=str(x), seconds=0.0))
        found = collect(map(task_of, asked), store)
    assert found.answers == {task_of(x).key: x for x in asked if x in there}
    assert {task.parameters["x"] for task in found.missing} == set(asked) - there
    assert len(found) == len(set(asked))


def test_names_of_tasks():
    tasks = [Task("runner.jobs:double", {"x": x}, 7) for x in range(5)]
    assert called(tasks[0]) == "double(x=0, seed=7)"
    assert named(tasks[:2]) == "double(x=0, seed=7), double(x=1, seed=7)"
    assert named(tasks).endswith("double(x=2, seed=7), and 2 more")
    assert named(tasks[:4]).endswith("double(x=2, seed=7), and 1 more")
    long = called(Task("runner.jobs:big", {"x": "a" * 10_000}, None))
    assert (len(long), long[-4:]) == (100, "...)")
