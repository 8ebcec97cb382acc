"""Engine "serial": one task after the other, in this process. A task that crashes the process ends the run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lbopt.runner.execute import execute
from lbopt.runner.outcome import Outcome
from lbopt.runner.task import Task


@dataclass(frozen=True, slots=True)
class Serial:
    """No processes, no options."""

    name: ClassVar[str] = "serial"

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes in the order of the tasks."""
        yield from map(execute, tasks)
