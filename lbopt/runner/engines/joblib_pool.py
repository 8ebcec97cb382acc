"""Engine "joblib": tasks in the processes of joblib's pool (loky), which stay warm.

When a process of the pool dies, loky takes the whole pool down and does not say whose fault it was. So every task
leaves a mark when it begins: those begun and not ended are run again, each alone in a fresh process (`Isolated`), where
the guilty one gets its failure and its neighbours get their answers; the others go on in a new pool.

When the parent dies, loky's processes would go through what they have in their queue and linger for minutes; here each
looks after its parent, and ends with it.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from lbopt.exceptions import BackendUnavailableError
from lbopt.runner.engines.isolated import Isolated, checked_jobs
from lbopt.runner.execute import deaf_children, execute
from lbopt.runner.row import EngineError, Outcome
from lbopt.runner.task import Task

_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Joblib:
    """Processes of joblib.

    Parameters
    ----------
    jobs
        How many; None means one for each core that this process may use. With one, joblib starts no process: tasks
        run in this one, as with engine "serial", and one that crashes ends the run.
    """

    jobs: int | None = None

    name: ClassVar[str] = "joblib"

    def __post_init__(self) -> None:
        if self.jobs is not None:
            checked_jobs(self.jobs)

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes as they come; when closed early, kill what still runs."""
        joblib = _joblib()
        pending = {task.key: task for task in tasks}
        with tempfile.TemporaryDirectory(prefix="lbopt-runner-") as marks:
            while pending:
                pool = joblib.Parallel(
                    min(self.jobs or joblib.cpu_count(), max(2, len(pending))),
                    backend="loky",
                    return_as="generator_unordered",
                    batch_size=1,
                    initializer=_end_with,
                    initargs=(os.getpid(),),
                )
                calls = [joblib.delayed(_marked)(task, marks) for task in pending.values()]
                try:
                    with ExitStack() as begun:
                        with deaf_children():
                            done = begun.enter_context(closing(pool(calls)))
                        for outcome in done:
                            del pending[outcome.key]
                            Path(marks, outcome.key).unlink(missing_ok=True)
                            yield outcome
                except BrokenProcessPool as error:
                    suspects = [task for task in pending.values() if Path(marks, task.key).exists()]
                    if not suspects:
                        raise EngineError(
                            f"the processes of engine 'joblib' die before a task begins; engine 'serial' needs none: "
                            f"{error}"
                        ) from error
                    with closing(Isolated().run(suspects)) as alone:
                        for outcome in alone:
                            del pending[outcome.key]
                            yield outcome


def _marked(task: Task, marks: str) -> Outcome:
    """Leave the mark that the task has begun, in the folder `marks`, and run it."""
    Path(marks, task.key).touch()
    return execute(task)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended: the first call in each process of the pool."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def _joblib() -> ModuleType:
    try:
        import joblib
    except ImportError:
        raise BackendUnavailableError(
            "engine 'joblib' needs the package joblib, which is absent: pip install 'joblib>=1.5'; "
            "engine 'serial' needs none"
        ) from None
    from joblib.externals.loky.backend import resource_tracker

    resource_tracker.ensure_running()  # its start would take the mask of `deaf_children` off again
    # loky replaces a process that has grown by 100 MB, and gives its task to another: nothing is lost
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    found: ModuleType = joblib
    return found
