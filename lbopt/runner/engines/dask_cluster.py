"""Engine "dask": tasks on the workers of a Dask cluster, of a scheduler elsewhere or of processes of this machine.

A task travels as text and so does its outcome, and what the cluster is asked to call is a line of text as well: the
scheduler needs no lbopt, and a worker without it says so. Only so many tasks are with the cluster at a time as keep it
busy, so neither side's memory grows with the study.

Dask runs the tasks of a worker that died again, on others, and gives up on a task whose workers died too often
(`distributed.scheduler.allowed-failures`, 3); that task has failed, and the run goes on.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, ClassVar
from urllib.parse import urlsplit

from lbopt.exceptions import InputError
from lbopt.runner.engines import dask_worker
from lbopt.runner.engines.dask_connection import connected
from lbopt.runner.engines.engine import checked_jobs
from lbopt.runner.errors import EngineError
from lbopt.runner.outcome import Failure, Outcome
from lbopt.runner.provenance import provenance
from lbopt.runner.task import Task

_log = logging.getLogger(__name__)

#: A cluster without a single worker is waited for so long: workers of a batch system start when it is their turn.
PATIENCE_SECONDS = 300.0

_LOOK_SECONDS = 1.0

#: An outcome of the longest kind takes its time over a slow network; one whose worker has just died never comes.
_FETCH_SECONDS = 60.0

#: Tasks with the cluster for each of its threads, and at least: enough that no thread ever waits for this process.
_PER_THREAD = 4
_AT_LEAST = 64

_CALL = f"__import__('importlib').import_module({dask_worker.__name__!r}).run({{text!r}}, {{version!r}})"


@dataclass(frozen=True, slots=True)
class Dask:
    """Workers of a Dask cluster.

    Parameters
    ----------
    jobs
        How many processes of a local cluster; None means one for each core that this process may use.
    address
        "host:port" of a scheduler that runs already, or "tls://host:port" of one that asks for the certificates which
        Dask's options `distributed.comm.tls` name; None starts a local cluster, and stops it at the end.
    """

    jobs: int | None = None
    address: str | None = None

    name: ClassVar[str] = "dask"

    def __post_init__(self) -> None:
        if self.jobs is not None:
            checked_jobs(self.jobs)
        if self.address is None:
            return
        if self.jobs is not None:
            raise InputError(
                f"engine 'dask' has the option jobs, {self.jobs}, and the scheduler {self.address}; the workers of a "
                "scheduler are started beside it: leave jobs out"
            )
        _check_address(self.address)

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Yield the outcomes as they come; when closed early, cancel what waits and stop what runs."""
        with connected(self.address, self.jobs) as client:
            cluster = _Cluster(client, self.address or "this machine")
            try:
                yield from cluster.outcomes(tasks)
            finally:
                cluster.cancel()


class _Cluster:
    """The tasks that are with a cluster, and whether it still has workers to run them."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name
        self._run = uuid.uuid4().hex  # two runs at one scheduler do not share their tasks
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._given: dict[str, tuple[Task, Any, float]] = {}
        self._threads = 0
        self._looked = -_LOOK_SECONDS
        self._busy = time.monotonic()  # when a worker was last seen
        self._told = False

    def outcomes(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """Hand the tasks over, a window of them at a time, and yield how each ended."""
        waiting = deque(tasks)
        while waiting or self._given:
            self._look()
            while waiting and len(self._given) < max(_AT_LEAST, _PER_THREAD * self._threads):
                self._give(waiting.popleft())
            try:
                future = self._ended.get(timeout=_LOOK_SECONDS)
            except Empty:
                continue
            if (outcome := self._outcome(future)) is not None:
                yield outcome

    def cancel(self) -> None:
        """Take back what has not ended."""
        futures = [future for _, future, _ in self._given.values()]
        self._given.clear()
        if futures and self._client.status == "running":
            with suppress(Exception):  # a scheduler that is gone has forgotten them anyway
                self._client.cancel(futures, force=True)

    def _give(self, task: Task) -> None:
        call = _CALL.format(text=task.text, version=provenance()["lbopt"])
        try:
            future = self._client.submit(eval, call, key=f"lbopt-{self._run}-{task.key}", pure=False)
        except Exception as error:  # the connection was closed a moment ago
            raise self._lost() from error
        self._given[future.key] = (task, future, time.monotonic())
        future.add_done_callback(self._ended.put)

    def _outcome(self, future: Any) -> Outcome | None:
        """Return the outcome; None where it got lost with its worker on the way here, and is computed again."""
        task, _, begun = self._given[future.key]
        if future.status == "error":
            outcome = _blamed(task, future.exception(), time.monotonic() - begun)
        else:
            try:
                outcome = Outcome.from_json(future.result(timeout=_FETCH_SECONDS))
            except TimeoutError:
                future.add_done_callback(self._ended.put)
                return None
            except Exception as error:  # cancelled, or forgotten by a scheduler that began anew
                raise self._lost() from error
        del self._given[future.key]
        future.release()
        return outcome

    def _look(self) -> None:
        """See, once in a while, how many threads there are; a cluster that is gone or stays empty is an error."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        if self._client.status != "running":
            raise self._lost()
        try:
            self._threads = sum(self._client.nthreads().values())
        except Exception as error:
            raise self._lost() from error
        if self._threads:
            self._busy = now
            self._told = False
        elif now - self._busy > PATIENCE_SECONDS:
            raise EngineError(
                f"the Dask scheduler at {self._name} has had no worker for {PATIENCE_SECONDS:.0f} s; start some with "
                f"`dask worker {self._name}` and run again, what has ended is stored"
            )
        elif not self._told and now - self._busy > 10 * _LOOK_SECONDS:
            self._told = True
            _log.warning("the Dask scheduler at %s has no worker; waiting for one", self._name)

    def _lost(self) -> EngineError:
        return EngineError(
            f"the Dask scheduler at {self._name} is gone; start it and run again, what has ended is stored"
        )


def _blamed(task: Task, error: BaseException, seconds: float) -> Outcome:
    """Return the failure of a task whose workers died; any other error is the cluster's, not the task's."""
    if type(error).__name__ == "KilledWorker":
        message = "every Dask worker that was given the task died while it had it"
        failure = Failure(kind="died", exception="", message=message, traceback=str(error))
        return Outcome(key=task.key, failure=failure, seconds=seconds)
    if isinstance(error, EngineError):
        raise error
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "lbopt":
        what = "no lbopt" if error.name == "lbopt" else "an lbopt that knows no engine 'dask'"
        raise EngineError(
            f"a worker of the Dask cluster has {what}; install lbopt {provenance()['lbopt']} where the workers run"
        ) from error
    raise EngineError(f"a worker of the Dask cluster cannot run tasks: {type(error).__name__}: {error}") from error


def _check_address(address: str) -> None:
    try:
        place = address.removeprefix("tls://")
        parts = urlsplit(f"tcp://{place}")
        good = parts.hostname and parts.port and parts.netloc == place and "@" not in place
    except ValueError:  # a port that is no number
        good = False
    if not good:
        raise InputError(f"the Dask scheduler is '{address}'; expected host:port, as in dask://localhost:8786")
