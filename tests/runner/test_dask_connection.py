"""The connection to a scheduler, with a stand-in for Dask: its version is asked for, and its loggers are silent."""

import logging
import sys
from types import SimpleNamespace

import pytest

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner.engines import dask_cluster
from lbopt.runner.row import EngineError


class Client:
    """A client of a scheduler with some version of `distributed`."""

    def __init__(self, answer):
        self.answer, self.closed = answer, False

    def get_versions(self, check):
        assert not check
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"scheduler": self.answer}

    def close(self, timeout):
        self.closed = True


def dask_of(monkeypatch, client, version="2026.3.1"):
    made = SimpleNamespace(__version__=version, Client=lambda *given, **options: client)
    monkeypatch.setattr(dask_cluster, "_distributed", lambda: made)


def version(text):
    return {"packages": {"distributed": text}}


@pytest.mark.parametrize("answer", [version("2026.3.1"), version("2026.3.0")])
def test_a_scheduler_of_the_same_month_is_used(answer, monkeypatch):
    client = Client(answer)
    dask_of(monkeypatch, client)
    with dask_cluster.connected("host:8786", None) as found:
        assert found is client
        assert not client.closed
    assert client.closed


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        (version("2026.2.1"), r"2026\.2\.1"),
        (version("2025.3.1"), r"2025\.3\.1"),
        ({"packages": {}}, "unknown"),
        (None, "unknown"),
        (ValueError("what?"), "unknown"),
    ],
)
def test_a_scheduler_of_another_month_is_refused(answer, there, monkeypatch):
    client = Client(answer)
    dask_of(monkeypatch, client)
    says = (
        rf"scheduler at host:8786 runs distributed {there}, and this machine distributed 2026\.3\.1; install the same"
    )
    with pytest.raises(EngineError, match=says), dask_cluster.connected("host:8786", None):
        pass
    assert client.closed


def test_not_even_critical_messages_of_dask_are_shown_while_connected(monkeypatch):
    logger = logging.getLogger("distributed.test")
    logger.setLevel(logging.INFO)
    dask_of(monkeypatch, Client(version("2026.3.1")))
    with dask_cluster.connected("host:8786", None):
        assert not logger.isEnabledFor(logging.CRITICAL)
    assert logger.level == logging.INFO


def test_no_worker_of_this_machine_is_given_up_by_the_wall_clock(monkeypatch):
    """Set forward by hours, it would have all workers started anew."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    seen = []

    def cluster(**options):
        seen.append(dask.config.get("distributed.scheduler.worker-ttl"))
        return SimpleNamespace(close=lambda timeout: None)

    made = SimpleNamespace(
        Security=distributed.Security, LocalCluster=cluster, Client=lambda *given, **options: Client(None)
    )
    monkeypatch.setattr(dask_cluster, "_distributed", lambda: made)
    with dask_cluster.connected(None, 1):
        assert seen == [None]


def certificate(folder):
    """Write the file of a certificate with its key, which signs itself, and return where it is."""
    temporary = pytest.importorskip("distributed").Security.temporary()
    (folder / "all.pem").write_text(temporary.tls_client_cert + temporary.tls_client_key)
    return str(folder / "all.pem")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        (
            "ca-file",
            None,
            r"option distributed\.comm\.tls\.ca-file is not set; set .*DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
        ),
        ("client.cert", None, r"option distributed\.comm\.tls\.client\.cert is not set"),
        ("ca-file", "absent.pem", r"tls\.ca-file is 'absent\.pem', and there is no such file"),
        ("client.key", "absent.pem", r"tls\.client\.key is 'absent\.pem', and there is no such file"),
        ("client.cert", __file__, r"are no usable PEM files \(.*test_dask_connection\.py"),
    ],
)
def test_certificates_that_cannot_be_used_are_named(option, value, says, tmp_path):
    dask = pytest.importorskip("dask")
    file = certificate(tmp_path)
    options = {"ca-file": file, "client.cert": file, "client.key": None} | {option: value}
    with (
        dask.config.set({f"distributed.comm.tls.{name}": path for name, path in options.items()}),
        pytest.raises(InputError, match=says),
        dask_cluster.connected("tls://127.0.0.1:9", None),
    ):
        pass


def test_without_cryptography_nothing_is_started(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    says = r"needs the package cryptography, which is absent.*pip install 'lbopt\[dask\]'"
    with pytest.raises(BackendUnavailableError, match=says), dask_cluster.connected(None, 1):
        pass
