"""What an engine is: something that runs tasks and yields how each ended, as it ends, in any order."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Protocol

from lbopt.exceptions import InputError
from lbopt.runner.outcome import Outcome
from lbopt.runner.task import Task

#: So many processes are started on any machine that is asked for them; beyond, four times the cores.
_MOST_JOBS = 64


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
    most = max(_MOST_JOBS, 4 * (os.cpu_count() or 1))
    if jobs > most:
        raise InputError(
            f"jobs is {jobs}; this machine has {os.cpu_count()} cores, and would drown in more than {most}"
        )
    return jobs
