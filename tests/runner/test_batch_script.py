"""The script of the manual for a batch system, run as it stands; only what a machine without SLURM lacks is put in."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runner.processes import ROOT, wait_until

from lbopt.runner import Store

pytest.importorskip("distributed")

#: `lbopt check` with tasks of these tests: forty, each a tenth of a second.
LBOPT = """
import sys
from pathlib import Path
from lbopt.runner import Task
from lbopt.studies.running import run_stored
given = dict(zip(sys.argv[4::2], sys.argv[5::2], strict=True))
if __name__ == "__main__":
    assert sys.argv[1:4] == ["check", "all", "--full"]
    tasks = [Task("runner.jobs:slow_logged", {"x": x, "log": "calls.txt"}, None) for x in range(40)]
    done = run_stored(tasks, store=Path(given["--store"]), engine=given["--engine"])
    print(*done.notes)
    sys.exit(130 if done.interrupted else 0)
"""


def script():
    (text,) = re.findall(r"^```bash\n(.*?)^```$", (ROOT / "docs" / "runner.md").read_text(), re.MULTILINE | re.DOTALL)
    return text


@pytest.fixture
def submit(tmp_path):
    """A function that starts the script in a folder with stand-ins for srun, lbopt and hostname on the PATH."""
    (tmp_path / "lbopt.py-stub").write_text(LBOPT)
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name, line in {
        "srun": 'exec "$@"',
        "hostname": "echo 127.0.0.1",
        "sleep": "exit 0",
        "dask": f'exec {sys.executable} -m dask "$@"',
        "lbopt": f'exec {sys.executable} {tmp_path}/lbopt.py-stub "$@"',
    }.items():
        (stubs / name).write_text(f"#!/bin/bash\n{line}\n")
        (stubs / name).chmod(0o755)
    (tmp_path / "job.sh").write_text(script())
    (tmp_path / "scratch").mkdir()

    def call():
        path = os.pathsep.join(map(str, [ROOT, ROOT / "tests"]))
        return subprocess.Popen(
            ["bash", "job.sh"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": path,
                "TMPDIR": str(tmp_path / "scratch"),
                "SLURM_JOB_ID": str(os.getpid()),
                "SLURM_CPUS_PER_TASK": "2",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the cluster's own log
            text=True,
            start_new_session=True,
        )

    return call


@pytest.mark.slow
def test_the_script_is_stopped_and_submitted_again(tmp_path, submit):
    """What had ended comes back with the store, nothing of the cluster is left, and the next job does the rest."""
    calls = tmp_path / "calls.txt"
    first = submit()
    wait_until(lambda: calls.exists() and len(calls.read_text().split()) > 5)
    first.send_signal(signal.SIGINT)  # to the script alone, as --signal=B:INT does
    shown, _ = first.communicate(timeout=60)  # ends when nobody holds the pipe any more
    assert first.returncode == 130
    assert "the same command goes on" in shown
    with Store(tmp_path / "check.sqlite", read_only=True) as store:
        some = len(store)
    assert 0 < some < 40
    second = submit()
    second.communicate(timeout=60)
    assert second.returncode == 0
    with Store(tmp_path / "check.sqlite", read_only=True) as store:
        assert sorted(row.answer for row in store.rows("done")) == list(range(40))
    assert len(calls.read_text().split()) <= 40 + 3  # twice: those that were under way
    left = [path.name for path in Path(tmp_path / "scratch").iterdir() if path.name.startswith("lbopt")]
    assert left == []
