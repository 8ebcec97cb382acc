"""A verb on a scheduler with workers that others started: workers die in flight, Ctrl-C comes, results are the same."""

import os
import signal
import sys
from subprocess import PIPE, Popen

import pytest
from cli.terminal import environment, lbopt
from runner.processes import alive, wait_for_rows, wait_until
from runner.test_dask import WORKER, Cluster

from tests.kills import results

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.slow, pytest.mark.jit]

STUDY = [
    *["study", "scaling", "-B", "4", "--policy", "fcfs", "--policy", "br-0", "--store", "store.sqlite", "-o", "out"],
    *(word for workers in range(2, 14) for word in ("-G", str(workers))),
]


def started(folder, engine):
    words = [sys.executable, "-m", "lbopt", *STUDY, "--engine", engine]
    return Popen(words, cwd=folder, env=environment(), stdout=PIPE, stderr=PIPE, text=True)


def ended(process, within=120):
    said = process.communicate(timeout=within)[1]
    assert "Traceback" not in said
    return process.returncode


def worker_pids(address):
    """Process numbers of the workers that the scheduler knows."""
    with distributed.Client(address, set_as_default=False) as client:
        return sorted(client.run(os.getpid).values())


def test_workers_die_and_ctrl_c_comes(begin, tmp_path):
    """Two workers, whose nannies replace them: each is killed once, then Ctrl-C; the next run goes on."""
    easy, hard = tmp_path / "easy", tmp_path / "hard"
    easy.mkdir(), hard.mkdir()
    assert lbopt(*STUDY, cwd=easy).returncode == 0

    cluster = Cluster(begin, tmp_path)
    address = cluster._address
    words = ("--nworkers", 2, "--nthreads", 1, "--no-dashboard", "--host", "127.0.0.1")
    workers = begin(WORKER, address, *words)
    try:
        wait_until(lambda: len(worker_pids(address)) == 2)
        run = started(hard, cluster.spec)
        for number, victim in enumerate(worker_pids(address), start=1):
            wait_for_rows(hard / "store.sqlite", number)
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda victim=victim: not alive(victim))
        wait_for_rows(hard / "store.sqlite", 4)
        assert run.poll() is None, "it ended too early for this test"
        run.send_signal(signal.SIGINT)
        assert ended(run) == 130
        with distributed.Client(address, set_as_default=False) as client:
            wait_until(lambda: sum(map(len, client.processing().values())) == 0)
        assert ended(started(hard, cluster.spec)) == 0
    finally:
        for process in (workers, cluster.scheduler):
            process.terminate()
            process.wait(20)
    assert results(hard / "out", "study") == results(easy / "out", "study")
