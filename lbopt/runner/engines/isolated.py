"""Engine "isolated": every task in a child process of its own, so that a crash, a leak or a deaf solver harms no other.

The child is a fresh interpreter, not a fork: nothing of the parent's state reaches it but `sys.path` and the
environment. With `reuse`, a child that has answered gets the next task, which saves its imports; one that died or was
killed is replaced.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import ClassVar

from lbopt.exceptions import InputError
from lbopt.runner.engines.engine import checked_jobs
from lbopt.runner.engines.lane import Lane
from lbopt.runner.outcome import Outcome
from lbopt.runner.task import Task

#: A child that died is seen at once, unless one that it forked holds its end of the pipe: then after this long.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Isolated:
    """A child process for each task; POSIX alone.

    Parameters
    ----------
    jobs
        How many run at a time. One, so that timings are not of neighbours, unless asked for more.
    kill_after
        Seconds from when a task is handed to its child, start and imports included, after which it is killed.
    reuse
        Whether a child takes the next task after it has answered.
    """

    jobs: int = 1
    kill_after: float | None = None
    reuse: bool = False

    name: ClassVar[str] = "isolated"

    def __post_init__(self) -> None:
        checked_jobs(self.jobs)
        limit = self.kill_after
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf):
            raise InputError(f"kill_after is {limit!r}; expected seconds, more than 0, or None")
        if os.name != "posix":
            raise InputError("engine 'isolated' needs a POSIX system; take engine 'serial' or 'joblib' here")

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes as they come; when closed early, kill what still runs."""
        waiting = deque(tasks)
        lanes = [Lane(kill_after=self.kill_after, reuse=self.reuse) for _ in range(min(self.jobs, len(waiting)))]
        try:
            while True:
                for lane in lanes:
                    if lane.task is None and waiting:
                        lane.begin(waiting.popleft())
                busy = [lane for lane in lanes if lane.task is not None]
                if not busy:
                    return
                limits = [left for lane in busy if (left := lane.seconds_left()) is not None]
                wait([lane.fileno() for lane in busy], min([_LOOK_SECONDS, *limits]))
                for lane in busy:
                    if (outcome := lane.look()) is not None:
                        yield outcome
        finally:
            for lane in lanes:
                lane.stop()
