"""A child for each task: it may crash, hang, print and leave children behind, and harms nobody."""

import pytest
from runner.processes import alive, wait_until

from lbopt.runner import Isolated, Summary, Task, run_tasks

FINE = [Task("runner.jobs:double", {"x": x}, None) for x in range(2)]


@pytest.mark.some(4)
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("segfault", "by SIGSEGV"),
        ("exit", "with exit code 3"),
        ("fork", "with exit code 3"),
        ("kill", "by SIGKILL, which the system"),
    ],
)
def test_a_crash_is_the_failure_of_its_task(store, how, said, reuse):
    bad = Task("runner.jobs:dies", {"how": how}, None)
    assert run_tasks([FINE[0], bad, FINE[1]], store, engine=Isolated(reuse=reuse)) == Summary(computed=2, failed=1)
    failure = store.get(bad).failure
    assert failure.kind == "died"
    assert said in failure.message
    assert ("in dies" in failure.traceback) == (how == "segfault")
    assert [store.answer(task)["twice"] for task in FINE] == [0, 2]


@pytest.mark.more
@pytest.mark.alone
def test_a_deaf_task_is_killed_with_its_children(store, tmp_path):
    """Neither SIGTERM nor SIGINT would stop it, and its child would outlive it."""
    deaf = Task("runner.jobs:deaf", {"pid_file": str(tmp_path / "ids")}, None)
    assert run_tasks([deaf, *FINE], store, engine=Isolated(jobs=2, kill_after=3)) == Summary(computed=2, failed=1)
    row = store.get(deaf)
    assert (row.failure.kind, row.failure.exception) == ("killed", "")
    assert row.failure.message == "the task was killed because it had not ended after 3 s"
    assert row.seconds >= 3
    wait_until(lambda: not any(map(alive, (tmp_path / "ids").read_text().split())), within=60)


@pytest.mark.parametrize("reuse", [False, True])
def test_noise_does_not_reach_the_answer(store, reuse, capfd):
    """Prints of Python, of libraries and of children go nowhere; standard input is empty, and tasks stay apart."""
    tasks = [Task("runner.jobs:noisy", {"x": x}, None) for x in range(2)]
    assert run_tasks(tasks, store, engine=Isolated(reuse=reuse)) == Summary(computed=2)
    assert [store.answer(task) for task in tasks] == [[0, ""], [1, ""]]
    assert capfd.readouterr() == ("", "")


def test_a_child_is_fresh_unless_it_is_to_be_reused():
    """Process ids tell."""
    tasks = [Task("runner.jobs:process", {}, None)] * 3
    fresh = [outcome.answer for outcome in Isolated().run(tasks)]
    warm = [outcome.answer for outcome in Isolated(reuse=True).run(tasks)]
    assert len(set(fresh)) == 3
    assert len(set(warm)) == 1


def test_a_task_longer_than_a_pipe_goes_through(store):
    """As does its answer."""
    task = Task("runner.jobs:echo", {"text": "ü" * 300_000}, None)
    assert run_tasks([task], store, engine=Isolated()) == Summary(computed=1)
    assert store.answer(task) == task.parameters


@pytest.mark.alone
def test_no_child_is_left_when_whoever_listens_stops(store, tmp_path):
    """A run that ends in the middle takes its children along."""
    deaf = Task("runner.jobs:deaf", {"pid_file": str(tmp_path / "ids")}, None)

    def stop(summary, outcome):
        if outcome is not None:
            wait_until((tmp_path / "ids").exists)
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run_tasks([deaf, *FINE], store, engine=Isolated(jobs=2), progress=stop)
    wait_until(lambda: not any(map(alive, (tmp_path / "ids").read_text().split())), within=5)
    assert len(store) == 1
