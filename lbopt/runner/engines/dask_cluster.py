"""Reaches a Dask cluster, or starts one of worker processes on this machine, without a word from Dask on the way.

A program that can talk to a scheduler or a worker can run code as its user. A cluster of this machine therefore has
certificates of its own, made for the run and kept in memory, and serves no pages.

Dask tells its story through loggers of its own, on standard error. What a user of the runner must know of it comes as
an EngineError instead.

Engine "dask": tasks on the workers of a Dask cluster, of a scheduler elsewhere or of processes of this machine.

A task travels as text and so does its outcome, and what the cluster is asked to call is a line of text as well: the
scheduler needs no lbopt, and a worker without it says so. Only so many tasks are with the cluster at a time as keep it
busy, so neither side's memory grows with the study.

Dask runs the tasks of a worker that died again, on others, and gives up on a task whose workers died too often
(`distributed.scheduler.allowed-failures`, 3); that task has failed, and the run goes on.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.files import shown
from lbopt.runner.engines import dask_worker
from lbopt.runner.engines.isolated import checked_jobs
from lbopt.runner.execute import deaf_children
from lbopt.runner.row import EngineError, Failure, Outcome, provenance
from lbopt.runner.task import Task

#: An unreachable scheduler is given up after so long.
CONNECT_SECONDS = 10.0

_NOISY = ("distributed", "tornado", "asyncio", "bokeh")
_MUTE = logging.CRITICAL + 1

#: What a worker process has to find in its environment when it imports Dask, to be as quiet as this one.
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical"}

#: Dask takes a worker of whom it has not heard for minutes, by the wall clock, for dead. When the clock is set forward,
#: those are all. A process of this machine that has died is seen without.
_NO_DEADLINE = {"distributed.scheduler.worker-ttl": None}

#: What a scheduler and workers show to browsers would be open to all users of the machine, and is of no use here.
_NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}

_TLS = "distributed.comm.tls."


@contextmanager
def connected(address: str | None, jobs: int | None) -> Iterator[Any]:
    """Give a `distributed.Client` of the scheduler at `address` (see `Dask`), or of a new one of `jobs` processes."""
    distributed = _distributed()
    with _muted(), ExitStack() as open_things:
        if address is None:
            security = _own_certificates(distributed)
            cluster = open_things.enter_context(_local_cluster(distributed, jobs, security))
            client = open_things.enter_context(_client(distributed, cluster, "this machine", security))
        else:
            security = _certificates_of_user(distributed) if address.startswith("tls://") else None
            target = address if security else f"tcp://{address}"
            client = open_things.enter_context(_client(distributed, target, address, security))
            _same_dask(distributed, client, address)
        yield client


@contextmanager
def _client(distributed: ModuleType, target: Any, name: str, security: Any) -> Iterator[Any]:
    found: list[Any] = []
    options = {"timeout": CONNECT_SECONDS, "set_as_default": False, "security": security}

    def reach() -> None:
        with suppress(Exception):  # from refused connections to strangers that speak another language
            found.append(distributed.Client(target, **options))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other versions of other packages: only lbopt's own move a number
        # in a thread, because a stranger that takes the call and says nothing is listened to for ever
        thread = threading.Thread(target=reach, daemon=True)
        thread.start()
        thread.join(CONNECT_SECONDS + 1.0)
    if not found:
        raise EngineError(
            f"no Dask scheduler answers at {name} within {CONNECT_SECONDS:.0f} s; is `dask scheduler` running there, "
            + ("does it know these certificates, " if security else "")
            + "and can this machine reach it?"
        )
    client = found[0]
    try:
        yield client
    finally:
        with suppress(Exception):  # of a scheduler that is gone
            client.close(timeout=2)


@contextmanager
def _local_cluster(distributed: ModuleType, jobs: int | None, security: Any) -> Iterator[Any]:
    """Start processes with one thread each; their number is that of the cores that Dask finds, if none is given."""
    import dask
    from dask.system import CPU_COUNT

    with (
        tempfile.TemporaryDirectory(prefix="lbopt-dask-", ignore_cleanup_errors=True) as scratch,
        ExitStack() as started,
    ):
        try:
            options = {**_quiet_children(dask), **_NO_DEADLINE, **_NO_PAGES, "temporary-directory": scratch}
            with dask.config.set(options), deaf_children():
                cluster = distributed.LocalCluster(
                    n_workers=jobs or CPU_COUNT,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    security=security,
                    memory_limit=0,  # tasks run in children of the workers, which Dask does not measure
                    silence_logs=_MUTE,
                )
                started.callback(_close, cluster)  # before Ctrl-C can act
        except Exception as error:
            raise EngineError(
                "the local processes of engine 'dask' do not start (a script that uses it needs "
                f"`if __name__ == '__main__':`); engine 'isolated' needs none of them: {error}"
            ) from error
        yield cluster


def _own_certificates(distributed: ModuleType) -> Any:
    """Return what scheduler, workers and client of one run know each other by, and no other process has."""
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise BackendUnavailableError(
            "engine 'dask' needs the package cryptography, which is absent, to keep others out: "
            "pip install 'lbopt[dask]'; engine 'joblib' uses the cores of this machine without it"
        ) from None


def _certificates_of_user(distributed: ModuleType) -> Any:
    """Return the certificates that Dask's options name; an InputError says which is absent or no usable file."""
    security = distributed.Security(require_encryption=True)
    given = {
        "ca-file": security.tls_ca_file,
        "client.cert": security.tls_client_cert,
        "client.key": security.tls_client_key,
    }
    for option, path in given.items():
        if path is None and option != "client.key":  # which may stand in the file of the certificate
            raise InputError(
                f"dask+tls:// needs certificates, and Dask's option {_TLS}{option} is not set; set {_TLS}ca-file, "
                "client.cert and client.key in ~/.config/dask/*.yaml or as DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "…__CLIENT__CERT and …__CLIENT__KEY"
            )
        if path is not None and not Path(path).is_file():
            raise InputError(f"Dask's option {_TLS}{option} is {shown(path, 200)}, and there is no such file")
    try:
        security.get_connection_args("client")
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(shown(path, 200) for path in given.values() if path is not None)
        raise InputError(f"the certificates for dask+tls:// are no usable PEM files ({files}): {error}") from None
    return security


def _close(cluster: Any) -> None:
    with suppress(Exception):
        cluster.close(timeout=5)


def _quiet_children(dask: ModuleType) -> dict[str, Any]:
    """Return the option that puts `_QUIET` into the environment of worker processes, beside what the user has there."""
    option = "distributed.nanny.pre-spawn-environ"
    return {option: dask.config.get(option, {}) | _QUIET}


def _same_dask(distributed: ModuleType, client: Any, address: str) -> None:
    """Refuse a scheduler whose Dask is of another month: the two would misunderstand each other sooner or later."""
    try:
        found = client.get_versions(check=False)["scheduler"] or {}
    except Exception:  # one so old that it does not understand the question
        found = {}
    there = str(found.get("packages", {}).get("distributed", "unknown"))
    here = distributed.__version__
    if there.split(".")[:2] != here.split(".")[:2]:
        raise EngineError(
            f"the scheduler at {address} runs distributed {there}, and this machine "
            f"distributed {here}; install the same on both"
        )


@contextmanager
def _muted() -> Iterator[None]:
    """Silence Dask's loggers and those below it in this process, and give them their levels back."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _NOISY]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(_MUTE)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError:
        raise BackendUnavailableError(
            "engine 'dask' needs the packages dask and distributed, which are absent: pip install 'lbopt[dask]'; "
            "engine 'joblib' uses the cores of this machine without them"
        ) from None
    found: ModuleType = distributed
    return found


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
