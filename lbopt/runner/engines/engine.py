"""What an engine is: something that runs tasks and yields how each ended, as it ends, in any order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from lbopt.exceptions import InputError
from lbopt.runner.outcome import Outcome
from lbopt.runner.task import Task


class Engine(Protocol):
    """Runs tasks.

    When the iterator is closed early, also by Ctrl-C, whatever still runs is stopped.
    """

    @property
    def name(self) -> str:
        """As the user writes it; stored with every row."""

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield one outcome for each task."""


def checked_jobs(jobs: object) -> int:
    """Return a number of processes that can be had."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs is {jobs!r}; expected an int of at least 1")
    return jobs
