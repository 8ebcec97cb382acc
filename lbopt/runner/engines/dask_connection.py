"""Reaches a Dask cluster, or starts one of worker processes on this machine, without a word from Dask on the way.

Dask tells its story through loggers of its own, on standard error. What a user of the runner must know of it comes as
an EngineError instead.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any

from lbopt.exceptions import BackendUnavailableError
from lbopt.runner.errors import EngineError
from lbopt.runner.interrupts import deaf_children

#: An unreachable scheduler is given up after so long.
CONNECT_SECONDS = 10.0

_NOISY = ("distributed", "tornado", "asyncio", "bokeh")
_MUTE = logging.CRITICAL + 1

#: What a worker process has to find in its environment when it imports Dask, to be as quiet as this one.
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical"}

#: Dask takes a worker of whom it has not heard for minutes, by the wall clock, for dead. When the clock is set forward,
#: those are all. A process of this machine that has died is seen without.
_NO_DEADLINE = {"distributed.scheduler.worker-ttl": None}


@contextmanager
def connected(address: str | None, jobs: int | None) -> Iterator[Any]:
    """Give a `distributed.Client` of the scheduler at `address` (host:port), or of a new one of `jobs` processes."""
    distributed = _distributed()
    with _muted(), ExitStack() as open_things:
        if address is None:
            cluster = open_things.enter_context(_local_cluster(distributed, jobs))
            client = open_things.enter_context(_client(distributed, cluster, "this machine"))
        else:
            client = open_things.enter_context(_client(distributed, f"tcp://{address}", address))
            _same_dask(distributed, client, address)
        yield client


@contextmanager
def _client(distributed: ModuleType, target: Any, name: str) -> Iterator[Any]:
    found: list[Any] = []

    def reach() -> None:
        with suppress(Exception):  # from refused connections to strangers that speak another language
            found.append(distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other versions of other packages: only lbopt's own move a number
        # in a thread, because a stranger that takes the call and says nothing is listened to for ever
        thread = threading.Thread(target=reach, daemon=True)
        thread.start()
        thread.join(CONNECT_SECONDS + 1.0)
    if not found:
        raise EngineError(
            f"no Dask scheduler answers at {name} within {CONNECT_SECONDS:.0f} s; is `dask scheduler` running there, "
            "and can this machine reach it?"
        )
    client = found[0]
    try:
        yield client
    finally:
        with suppress(Exception):  # of a scheduler that is gone
            client.close(timeout=2)


@contextmanager
def _local_cluster(distributed: ModuleType, jobs: int | None) -> Iterator[Any]:
    """Start processes with one thread each; their number is that of the cores that Dask finds, if none is given."""
    import dask
    from dask.system import CPU_COUNT

    with (
        tempfile.TemporaryDirectory(prefix="lbopt-dask-", ignore_cleanup_errors=True) as scratch,
        ExitStack() as started,
    ):
        try:
            options = {**_quiet_children(dask), **_NO_DEADLINE, "temporary-directory": scratch}
            with dask.config.set(options), deaf_children():
                cluster = distributed.LocalCluster(
                    n_workers=jobs or CPU_COUNT,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
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
