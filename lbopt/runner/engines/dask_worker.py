"""The worker's side of engine "dask": each task in a child process of the worker (a `Lane`), one child a thread.

Dask alone would run the task in the worker itself. A task that crashes would then take the worker down, and Dask would
blame, after some retries, everything that the worker had in its queue. With a child the crash is seen at once, with
its signal and last words, it costs no worker, and the guilty task alone fails. A worker that dies is then always
caused from outside, and Dask gives its tasks to another.

The children stay, so that imports and compiled kernels are paid for once. They end when the worker ends, however that
may be, because their standard input closes.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from multiprocessing.connection import wait

from lbopt.runner.engines.isolated import Lane
from lbopt.runner.row import EngineError, provenance
from lbopt.runner.task import Task

#: How often a worker asks whether its task is still wanted.
_LOOK_SECONDS = 0.5

_idle: deque[Lane] = deque()  # its pop and append are atomic: the threads of a worker share it


def run(text: str, version: str) -> str:
    """Run the task whose text this is and return its outcome as JSON; `version` is the sender's lbopt.

    An EngineError says that this worker has another one, whose numbers may differ.
    """
    here = provenance()["lbopt"]
    if here != version:
        raise EngineError(
            f"a worker of the Dask cluster has lbopt {here}, and this is lbopt {version}; install the same on both"
        )
    try:
        lane = _idle.pop()
    except IndexError:
        lane = Lane(kill_after=None, reuse=True)
    try:
        lane.begin(Task.from_text(text))
        while (outcome := lane.look()) is None:
            wait([lane.fileno()], _LOOK_SECONDS)
            if _given_up():
                raise EngineError("the run that sent the task has stopped")  # no receiver is left: this ends the child
    except BaseException:
        lane.stop()
        raise
    _idle.append(lane)
    return outcome.to_json()


def _given_up() -> bool:
    """Whether the sender has cancelled the task of this thread. Dask does not stop a running task by itself."""
    from distributed import get_worker

    with suppress(ValueError, AttributeError):  # outside a worker, or in one whose insides are arranged otherwise
        worker = get_worker()
        held = worker.state.tasks.get(worker.get_current_task())
        return held is None or held.state in ("cancelled", "released")
    return False
