"""Engine "dask" on real schedulers and workers of 127.0.0.1: nothing lost, nobody blamed wrongly, one sentence."""

import json
import logging
import os
import signal
import socket
import ssl
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from runner.processes import alive, wait_until

from lbopt.exceptions import InputError
from lbopt.runner import Dask, EngineError, Store, Summary, Task, make_engine, run_tasks
from lbopt.runner.engines import dask_cluster

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"

#: A worker on a machine on which lbopt is not installed.
BARE = f"""
import sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name == "lbopt":
            raise ModuleNotFoundError("No module named 'lbopt'", name=name)
sys.meta_path.insert(0, Absent)
{WORKER}
"""


def written(path):
    """Whether a file holds a whole JSON document."""
    try:
        json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True


class Cluster:
    """A scheduler and its workers, each a process of its own; `words` are more for the scheduler."""

    def __init__(self, begin, folder, *words):
        self._begin = begin
        words += ("--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", folder / "scheduler.json")
        self.scheduler = begin(SCHEDULER, *words)
        # The scheduler writes the file in place: there may be a moment in which it exists and is empty.
        wait_until(lambda: written(folder / "scheduler.json"))
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        self.spec = address.replace("tcp://", "dask://").replace("tls://", "dask+tls://")
        self._address = address
        self.workers = []

    def add(self, code=WORKER, *words):
        words = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", *words)
        self.workers.append(self._begin(code, self._address, *words))
        return self.workers[-1]


@pytest.fixture
def cluster(begin, tmp_path):
    made = Cluster(begin, tmp_path)
    yield made
    for process in [*made.workers, made.scheduler]:
        process.kill()


def logged(folder, numbers):
    return [Task("runner.jobs:slow_logged", {"x": x, "log": str(folder / "calls.txt")}, None) for x in numbers]


def answers(store):
    return [(row.task.text, row.status, row.answer, row.attempts) for row in store.rows()]


@pytest.mark.alone
@pytest.mark.more
def test_a_worker_is_killed_half_way(tmp_path, cluster, store):
    """Its tasks are run by the other one, and the store holds what an undisturbed run stores."""
    tasks = logged(tmp_path, range(30))
    victim, _ = cluster.add(), cluster.add()

    def kill(summary, outcome):
        if summary.computed == 10:
            victim.send_signal(signal.SIGKILL)

    assert run_tasks(tasks, store, engine=cluster.spec, progress=kill) == Summary(computed=30)
    assert victim.wait(20) == -signal.SIGKILL
    with Store(tmp_path / "serial.sqlite") as serial:
        run_tasks(tasks, serial)
        assert answers(serial) == answers(store)
    calls = (tmp_path / "calls.txt").read_text().split()
    assert len(calls) <= 60 + 4  # once in each store, and what the victim had


@pytest.mark.more
@pytest.mark.alone
def test_workers_are_killed_all_the_time(store):
    """Whatever they had, also outcomes that were not yet fetched, is computed again; every task has its answer."""
    killed = []

    def kill(summary, outcome):
        pid = outcome and int(outcome.answer)
        if summary.computed % 40 == 39 and pid not in killed:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    tasks = [Task("runner.jobs:whose", {"x": x}, None) for x in range(200)]
    assert run_tasks(tasks, store, engine="dask:jobs=2", progress=kill) == Summary(computed=200)
    assert len(killed) >= 3


@pytest.mark.more
def test_workers_may_come_late(tmp_path, cluster, store, caplog, monkeypatch):
    """A batch system starts them when it is their turn; the user hears why nothing moves."""
    monkeypatch.setattr(dask_cluster, "_LOOK_SECONDS", 0.1)
    engine = make_engine(cluster.spec)

    class Late:
        def filter(self, record):
            cluster.add()
            return True

    logging.getLogger(dask_cluster.__name__).addFilter(late := Late())
    try:
        assert run_tasks(logged(tmp_path, range(3)), store, engine=engine) == Summary(computed=3)
    finally:
        logging.getLogger(dask_cluster.__name__).removeFilter(late)
    assert "has no worker; waiting for one" in caplog.text


@pytest.mark.more
def test_a_cluster_that_stays_empty(store, cluster, monkeypatch):
    monkeypatch.setattr(dask_cluster, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(EngineError, match=r"has had no worker for 0 s; start some with `dask worker 127"):
        run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store, engine=cluster.spec)


@pytest.mark.alone
def test_a_scheduler_that_dies(tmp_path, store, cluster):
    """One sentence; what had ended is stored, and the run goes on elsewhere."""
    cluster.add()

    def kill(summary, outcome):
        if summary.computed == 3:
            cluster.scheduler.kill()

    with pytest.raises(EngineError, match=r"the Dask scheduler at 127.0.0.1:\d+ is gone; start it and run again"):
        run_tasks(logged(tmp_path, range(20)), store, engine=cluster.spec, progress=kill)
    assert len(store) >= 3
    assert run_tasks(logged(tmp_path, range(20)), store).remaining == 0


@pytest.mark.more
def test_a_worker_of_another_version(store, cluster, monkeypatch):
    cluster.add()
    monkeypatch.setattr(dask_cluster, "provenance", lambda: {"lbopt": "9.9"})
    with pytest.raises(EngineError, match=r"worker of the Dask cluster has lbopt .*, and this is lbopt 9.9; install"):
        run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store, engine=cluster.spec)
    assert len(store) == 0


@pytest.mark.more
def test_a_worker_without_lbopt(store, cluster):
    cluster.add(BARE)
    with pytest.raises(EngineError, match=r"a worker of the Dask cluster has no lbopt; install lbopt \d"):
        run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store, engine=cluster.spec)
    assert len(store) == 0


def test_a_scheduler_of_another_dask(store, cluster, monkeypatch):
    monkeypatch.setattr(distributed, "__version__", "2019.1.0")
    with pytest.raises(EngineError, match=r"runs distributed 20.*, and this machine distributed 2019.1.0; install"):
        run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store, engine=cluster.spec)


@pytest.mark.more
@pytest.mark.alone
def test_closed_early(tmp_path, cluster):
    """What waits is cancelled; what runs is killed with everything that it started, and the worker stays."""
    worker = cluster.add()
    tasks = [Task("runner.jobs:double", {"x": 1}, None), Task("runner.jobs:deaf", {"pid_file": "ids"}, None)]
    tasks += [Task("runner.jobs:deaf", {"pid_file": f"never{x}"}, None) for x in range(5)]
    with closing(make_engine(cluster.spec).run(tasks)) as outcomes:
        assert next(outcomes).key == tasks[0].key
        wait_until((tmp_path / "ids").exists)
    wait_until(lambda: not any(map(alive, (tmp_path / "ids").read_text().split())), within=10)
    time.sleep(0.5)
    assert worker.poll() is None
    assert list(tmp_path.glob("never*")) == []
    with distributed.Client(cluster._address, set_as_default=False) as client:
        assert sum(map(len, client.processing().values())) == 0


@pytest.mark.more
def test_a_task_that_crashes_costs_no_worker(store):
    """The guilty task fails with its signal and last words; all others get their answers."""
    tasks = [Task("runner.jobs:dies_or", {"x": x, "bad": 2}, None) for x in range(6)]
    assert run_tasks(tasks, store, engine="dask:jobs=1") == Summary(computed=5, failed=1)
    (row,) = store.rows("failed")
    assert (row.task, row.failure.kind, row.provenance["engine"]) == (tasks[2], "died", "dask")
    assert "by SIGSEGV" in row.failure.message
    assert "in dies_or" in row.failure.traceback


@pytest.mark.alone
def test_a_task_whose_workers_always_die(store):
    """Dask gives up on it after a few, it is stored as a failure, and the run ends with all other answers."""
    tasks = [Task("runner.jobs:kills_worker", {"x": x, "bad": 2}, None) for x in range(4)]
    assert run_tasks(tasks, store, engine="dask:jobs=2").remaining == 0
    row = store.get(tasks[2])
    assert (row.failure.kind, row.failure.message) == (
        "died",
        "every Dask worker that was given the task died while it had it",
    )


@pytest.mark.more
def test_the_window(tmp_path, store, monkeypatch):
    """No more tasks are with the cluster than keep it busy."""
    monkeypatch.setattr(dask_cluster, "_AT_LEAST", 3)
    monkeypatch.setattr(dask_cluster, "_PER_THREAD", 1)
    seen = []
    give = dask_cluster._Cluster._give

    def watched(self, task):
        give(self, task)
        seen.append(len(self._given))

    monkeypatch.setattr(dask_cluster._Cluster, "_give", watched)
    tasks = [Task("runner.jobs:double", {"x": x}, x) for x in range(20)]
    assert run_tasks(tasks, store, engine=Dask(jobs=1)) == Summary(computed=20)
    assert (len(seen), max(seen)) == (20, 3)


#: Says what went wrong in one sentence on standard output; whatever else is said comes on standard error.
ASK = """
import sys
from lbopt.exceptions import LbOptError
from lbopt.runner import *
from lbopt.runner.engines import dask_cluster
dask_cluster.CONNECT_SECONDS = 1.0
try:
    with Store("store.sqlite") as store:
        print(run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store, engine=sys.argv[1]))
except LbOptError as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.more
def test_a_scheduler_that_does_not_answer(begin):
    """One sentence, after a time that is stated, and nothing of Dask's on standard error."""
    shown, said = begin(ASK, "dask://127.0.0.1:9").communicate(timeout=30)
    assert shown == (
        "EngineError: no Dask scheduler answers at 127.0.0.1:9 within 1 s; is `dask scheduler` running there, and can "
        "this machine reach it?\n"
    )
    assert said == ""
    assert dask_cluster.CONNECT_SECONDS == 10.0


@pytest.mark.more
def test_a_stranger_at_the_address(begin):
    """Somebody listens who is no scheduler."""
    import http.server
    import threading

    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *given):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shown, said = begin(ASK, f"dask://127.0.0.1:{server.server_port}").communicate(timeout=30)
        server.shutdown()
    assert shown.startswith("EngineError: no Dask scheduler answers at 127.0.0.1:")
    assert said == ""


@pytest.mark.more
def test_a_local_cluster_says_nothing_and_leaves_nothing(begin, tmp_path):
    shown, said = begin(ASK, "dask:jobs=1").communicate(timeout=60)
    assert (shown, said) == ("Summary(computed=1, skipped=0, failed=0, remaining=0)\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]


def ports():
    """Where this process and those below it listen, as (address, port)."""
    listening = {
        parts[9]: parts[1].split(":")
        for table in ("tcp", "tcp6")
        for parts in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
        if parts[3] == "0A"
    }
    found, waiting = set(), [str(os.getpid())]
    while waiting:
        folder = Path("/proc") / waiting.pop()
        for thread in (folder / "task").iterdir():
            waiting += (thread / "children").read_text().split()
        for held in (folder / "fd").iterdir():
            with suppress(OSError):
                inode = str(held.readlink()).removeprefix("socket:[").rstrip("]")
                if inode in listening:
                    address, port = listening[inode]
                    found.add((address, int(port, 16)))
    return found


def heard(port, words=b"", certificates=None):
    """What a stranger hears at a port of this machine, whether in plain text or with certificates of his own."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.4) as stranger:
        if certificates:
            context = certificates.get_connection_args("client")["ssl_context"]
            context.verify_mode = ssl.CERT_NONE
            stranger = context.wrap_socket(stranger)
        stranger.sendall(words)
        return stranger.recv(4096)
    return b""


@pytest.mark.more
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
def test_a_local_cluster_lets_nobody_else_in():
    """No port of scheduler, nanny or worker takes a client without its certificate, and none shows a page."""
    before = ports()
    with dask_cluster.connected(None, 1) as client:
        assert client.submit(int, "3").result(timeout=20) == 3
        opened = ports() - before
        assert len(opened) >= 3 and {address for address, _ in opened} == {"0100007F"}, opened
        strange = distributed.Security.temporary()
        for _, port in opened:
            for words in (b"", b"GET /json/identity.json HTTP/1.0\r\n\r\n"):
                said = heard(port, words)
                assert not said or said.startswith((b"\x15\x03", b"HTTP/1.1 404")), said  # an alert of TLS, or no page
            assert heard(port, certificates=strange) == b""
        assert client.submit(int, "4").result(timeout=20) == 4


@pytest.mark.more
def test_a_scheduler_that_asks_for_certificates(begin, tmp_path, store, monkeypatch):
    """With those of Dask's environment it is used; without them, and as `dask://`, it is not."""
    temporary = distributed.Security.temporary()
    (tmp_path / "cert.pem").write_text(temporary.tls_client_cert)
    (tmp_path / "key.pem").write_text(temporary.tls_client_key)
    files = {"ca-file": "cert.pem", "cert": "cert.pem", "key": "key.pem"}
    words = [word for name, file in files.items() for word in (f"--tls-{name}", tmp_path / file)]
    made = Cluster(begin, tmp_path, "--protocol", "tls", *words)
    try:
        assert made.spec.startswith("dask+tls://127.0.0.1:")
        made.add(WORKER, *words)
        tasks = [Task("runner.jobs:double", {"x": x}, None) for x in range(3)]
        with pytest.raises(InputError, match=r"Dask's option distributed.comm.tls.ca-file is not set"):
            run_tasks(tasks, store, engine=made.spec)
        options = {"ca-file": "cert.pem", "client.cert": "cert.pem", "client.key": "key.pem"}
        monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1.0)
        with pytest.raises(EngineError, match=r"no Dask scheduler answers at 127.0.0.1:\d+ within"):
            run_tasks(tasks, store, engine=made.spec.replace("+tls", ""))
        other = distributed.Security.temporary()
        (tmp_path / "other.pem").write_text(other.tls_client_cert + other.tls_client_key)
        names = {f"distributed.comm.tls.{name}": str(tmp_path / "other.pem") for name in options}
        with (
            dask.config.set(names),
            pytest.raises(EngineError, match=r"at tls://127.0.0.1:\d+ .* does it know these certificates, and can"),
        ):
            run_tasks(tasks, store, engine=made.spec)
        monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 10.0)
        with dask.config.set({f"distributed.comm.tls.{name}": str(tmp_path / file) for name, file in options.items()}):
            assert run_tasks(tasks, store, engine=made.spec) == Summary(computed=3)
    finally:
        for process in [*made.workers, made.scheduler]:
            process.kill()
