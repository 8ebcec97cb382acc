"""Parts of the engine test that need no engine: its table, its words where it cannot be made, and its teardown."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.engine import environment
from tests.engine.http_raw import Answer
from tests.engine.processes import NotStartedError, processes, wait_until_up
from tests.engine.row import Row, markdown
from tests.engine.transparency import KINDS, difference


def test_the_table_has_a_row_for_each_check_and_marks_what_must_not_be():
    """Rows that a fleet lacks are empty cells, and details follow the table."""
    columns = {
        "ranks": [Row("a", "1 of 2", ["more"], ok=False)],
        "singles": [Row("a", "2 of 2"), Row("b", "x", ok=True)],
    }
    table, details = markdown(columns).split("\n\n")
    assert table.splitlines()[2:] == ["| a | **1 of 2** | 2 of 2 |", "| b |  | x |"]
    assert details == "* ranks, a: more\n"


def test_a_disk_that_is_too_small_and_a_package_that_is_absent_are_one_line(tmp_path):
    """The line names the folder, the numbers and the way out; of pip's log it is the error."""
    with pytest.raises(environment.EnvironmentProblem, match=r"GB free, and the engine needs .* GB: name a folder"):
        environment.require_room(tmp_path / "not" / "there", 10**18)
    environment.require_room(tmp_path, 1)
    log = "Collecting x\nERROR: No matching distribution found for x==1\n[notice] a new pip\n"
    assert environment.last_error(log) == "ERROR: No matching distribution found for x==1"
    assert environment.last_error("") == "no word of why"


def test_requirements_are_the_wheels_without_extras_and_pictures(tmp_path):
    """torch is installed before, and a text model does without torchvision."""
    told = ["torch==2.13.0+cpu", "torchvision; platform_machine != 'x'", "fastapi>=0.1", "zentorch; extra == 'zen'"]
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("x.dist-info/METADATA", "".join(f"Requires-Dist: {one}\n" for one in told))
    assert environment.requirements(tmp_path / "x.whl") == ["fastapi>=0.1"]


def event_of(text, index=0, name="0123456"):
    told = {"id": f"cmpl-{name}", "created": 7, "choices": [{"index": index, "text": text, "finish_reason": None}]}
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def test_answers_are_compared_without_what_is_drawn():
    """Names and times are drawn, sequences may come in any order and tokens in any number an event; all else counts."""
    end = b"data: [DONE]\n\n"
    direct = Answer(200, {"date": "now", "vary": "Origin"}, event_of("ab") + event_of("c") + event_of("x", 1) + end)
    same = event_of("x", 1, "abcdefg") + event_of("a") + event_of("bc") + end
    assert difference(direct, Answer(200, {"vary": "Origin"}, same)) == ""
    assert "body" in difference(direct, Answer(200, {"vary": "Origin"}, event_of("abd") + event_of("x", 1) + end))
    assert "body" in difference(direct, Answer(200, {"vary": "Origin"}, event_of("abc") + event_of("x", 1)))
    other = difference(direct, Answer(400, {}, b""))
    assert other.startswith("status 200 and 400; body {") and other.endswith("; headers vary")
    assert len(KINDS) == len({kind.name for kind in KINDS}) == 60


def alive(pid):
    """Whether a process runs; one that has ended and is not yet read does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


TWO = ["sh", "-c", "echo $$; trap '' TERM; sleep 300 & echo $!; wait"]


def pids_of(log):
    """Read the numbers that two processes write."""
    for _ in range(200):
        if log.exists() and len(found := log.read_text().split()) == 2:
            return [int(number) for number in found]
        time.sleep(0.02)
    raise AssertionError(log.read_text())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_programs_end_with_the_block(tmp_path, monkeypatch):
    """A program that ignores SIGTERM and its child are gone, and one that ends by itself is told with its last word."""
    monkeypatch.setattr("tests.engine.processes._GRACE", 0.05)
    with pytest.raises(NotStartedError, match="one ended at its start: no such model"), processes(tmp_path) as started:
        started.start("two", TWO)
        found = pids_of(tmp_path / "two.log")
        assert all(map(alive, found))
        wait_until_up([started.start("one", ["sh", "-c", "echo no such model"], "http://127.0.0.1:9")], "/health", 9)
    assert not any(map(alive, found))


@pytest.mark.more
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_programs_end_with_a_test_that_is_killed(tmp_path):
    """Even SIGKILL of the test, while a program of it is stopped, leaves nothing behind."""
    code = (
        "import sys, time, pathlib; from tests.engine.processes import processes\n"
        f"with processes(pathlib.Path({str(tmp_path)!r})) as p: p.start('two', {TWO!r}); time.sleep(60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    found = pids_of(tmp_path / "two.log")
    os.kill(found[1], 19)
    runner.kill()
    runner.wait()
    for _ in range(250):
        if not any(map(alive, found)):
            return
        time.sleep(0.02)
    raise AssertionError(f"{found} still run")
