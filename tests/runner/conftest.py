"""Fixtures of the runner's tests."""

import pytest
from runner.processes import start

from lbopt.runner import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def begin(tmp_path):
    """A function that starts a program in tmp_path; what still runs at the end of the test is killed."""
    running = []

    def call(code, *words):
        running.append(start(code, *words, cwd=tmp_path))
        return running[-1]

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)  # fails where a process that it started goes on without it
