"""Reaches a Dask cluster, or starts one of worker processes on this machine, without a word from Dask on the way.

Whoever can talk to a scheduler or a worker can run code as its user. A cluster of this machine therefore has
certificates of its own, made for the run and kept in memory, and serves no pages.

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
from pathlib import Path
from types import ModuleType
from typing import Any

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.files import shown
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

#: What a scheduler and workers show to browsers would be open to all users of the machine, and nobody here looks at it.
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
    """Return what scheduler, workers and client of one run know each other by, and nobody else has."""
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise BackendUnavailableError(
            "engine 'dask' needs the package cryptography, which is absent, to let nobody else in: "
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
