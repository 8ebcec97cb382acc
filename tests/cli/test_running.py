"""The options of verbs that run tasks, on a verb of these tests, as a terminal sees them."""

import pytest
import typer

from lbopt.cli import VERBS
from lbopt.cli.from_config import as_verb
from lbopt.cli.lazy import Verb
from lbopt.cli.study_verb import EXECUTION
from lbopt.runner import Task
from lbopt.studies.running import run_stored


def count_tasks(**given) -> None:
    tasks = [Task("runner.jobs:double", {"x": x}, None) for x in range(3)]
    done = run_stored(tasks, **given)
    for line in (len(done.answers), *done.notes):
        typer.echo(line)


counting = as_verb(count_tasks, "count", "Count.", (), EXECUTION)


@pytest.fixture
def count(type_in, monkeypatch):
    """A function that types `lbopt count` and options."""
    monkeypatch.setitem(VERBS, "count", Verb(f"{__name__}:counting", "Count."))
    return lambda *words: type_in("count", *words)


def test_run_and_collect(count, here):
    assert count() == (0, "3\n", "")
    assert list(here.iterdir()) == []
    assert count("--store", "s.sqlite", "--engine", "joblib:jobs=2") == (0, "3\n", "")
    assert count("--store", "s.sqlite", "--collect-only") == (0, "3\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "daks"), "unknown engine 'daks': did you mean dask? (also dask://host:port)"),
        (("--engine", "dask://node"), "the Dask scheduler is 'node'; expected host:port, as in dask://localhost:8786"),
        (
            ("--collect-only",),
            "to collect without running needs the store that holds the results; give it with --store",
        ),
    ],
)
def test_one_sentence(count, here, words, said):
    assert count(*words) == (2, "", f"error: {said}\n")
    assert list(here.iterdir()) == []


def test_a_scheduler_that_does_not_answer(count, monkeypatch):
    """Exit code 2 after the time that is said, and none of Dask's own words."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("lbopt.runner.engines.dask_cluster.CONNECT_SECONDS", 1.0)
    code, shown, said = count("--engine", "dask://127.0.0.1:9")
    assert (code, shown) == (2, "")
    assert said.startswith("error: no Dask scheduler answers at 127.0.0.1:9 within 1 s; is")
    assert said.count("\n") == 1
