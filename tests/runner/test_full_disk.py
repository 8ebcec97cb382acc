"""A full disk: one sentence, every stored row is kept, and with room again the results are those of an easy run."""

import subprocess

import pytest

from lbopt.runner import Store, StoreError, Summary, Task, run_tasks

TASKS = [Task("runner.jobs:big", {"x": x}, None) for x in range(200)]

#: Stores rows of 40 kB in the folder given, under a limit of file sizes if one is given; says each key when stored.
RUN = """
import resource, sys
from lbopt.runner import *
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with Store(sys.argv[1] + "/store.sqlite") as store:
        run_tasks(
            [Task("runner.jobs:big", {"x": x}, None) for x in range(200)], store,
            progress=lambda summary, outcome: outcome and print(outcome.key, flush=True),
        )
except StoreError as error:
    sys.exit(f"StoreError: {error}")
"""


def rows(path):
    with Store(path, read_only=True) as store:
        return [(row.task.text, row.status, row.answer, row.attempts) for row in store.rows()]


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """The rows of a run with room."""
    path = tmp_path_factory.mktemp("easy") / "store.sqlite"
    with Store(path) as store:
        run_tasks(TASKS, store)
    return rows(path)


def goes_on(path, kept, easy):
    """What was said to be stored is there; with room the rest is computed, and all rows are those of the easy run."""
    with Store(path, read_only=True) as store:
        assert set(store.statuses()) == kept
    with Store(path) as store:
        assert run_tasks(TASKS, store) == Summary(skipped=len(kept), computed=len(TASKS) - len(kept))
    assert rows(path) == easy


@pytest.mark.more
@pytest.mark.parametrize("limit", [1_000_000, 1_234_567])
def test_a_limit_of_file_sizes(tmp_path, begin, easy, limit):
    """As a quota does it: SQLite's write fails in the middle of a commit."""
    shown, said = begin(RUN, tmp_path, limit).communicate(timeout=60)
    assert said.startswith(
        f"StoreError: store {tmp_path}/store.sqlite cannot be used: the disk does not take or give data"
    )
    assert said.count("\n") == 1
    kept = set(shown.split())
    assert 5 < len(kept) < len(TASKS)
    goes_on(tmp_path / "store.sqlite", kept, easy)


@pytest.mark.more
def test_sqlite_says_full(tmp_path, easy):
    """The error that SQLite has for a full disk, from a limit of its own."""
    path = tmp_path / "store.sqlite"
    kept = set()
    with Store(path) as store:
        store._connection.execute("PRAGMA max_page_count=300")
        with pytest.raises(StoreError, match="the disk is full; make room and run again, what was stored is kept"):
            run_tasks(TASKS, store, progress=lambda summary, outcome: outcome and kept.add(outcome.key))
    assert 5 < len(kept) < len(TASKS)
    goes_on(path, kept, easy)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes; for root alone."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True, timeout=20)


def test_a_full_file_system(small_disk, begin, easy):
    """A real one: full in the middle of the run, then emptied a little, then enlarged."""
    path = small_disk / "store.sqlite"
    (small_disk / "ballast").write_bytes(bytes(1_000_000))
    kept = set()
    for room in (False, True):
        if room:
            (small_disk / "ballast").unlink()
        shown, said = begin(RUN, small_disk).communicate(timeout=60)
        assert said == (
            f"StoreError: store {path} cannot be used: the disk is full; make room and run again, what was stored is "
            "kept\n"
        )
        assert not kept & set(shown.split())
        kept |= set(shown.split())
    assert 5 < len(kept) < len(TASKS)
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True, capture_output=True, timeout=20)
    goes_on(path, kept, easy)


def test_not_even_room_to_begin(small_disk, begin):
    """Nothing is half made: with room again the same path becomes a store."""
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))
    _, said = begin(RUN, small_disk).communicate(timeout=60)
    assert said.startswith(f"StoreError: store {small_disk}/store.sqlite")
    assert said.count("\n") == 1
    ballast.unlink()
    with Store(small_disk / "store.sqlite") as store:
        assert run_tasks(TASKS[:3], store) == Summary(computed=3)


#: Runs ten tasks on an engine whose folder for passing things is the one given, and says what went wrong.
ELSEWHERE = """
import sys
from lbopt.runner import *
try:
    with Store("store.sqlite") as store:
        print(run_tasks([Task("runner.jobs:double", {"x": x}, None) for x in range(10)], store, engine=sys.argv[1]))
except EngineError as error:
    print(f"EngineError: {error}")
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["isolated", "joblib:jobs=2", "dask:jobs=1"])
def test_a_full_disk_of_passing_things(small_disk, tmp_path, begin, engine, monkeypatch):
    """Engines keep marks and logs in the folder for temporary files; if that is full, a sentence says so."""
    with pytest.raises(OSError, match="No space"), (small_disk / "ballast").open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))
    monkeypatch.setattr("runner.processes.TEMPORARY", str(small_disk))
    shown, _ = begin(ELSEWHERE, engine).communicate(timeout=60)
    assert shown.startswith(("EngineError: ", "Summary(computed=10,"))
    assert shown.count("\n") == 1
    with Store(tmp_path / "store.sqlite") as store:
        assert run_tasks([Task("runner.jobs:double", {"x": x}, None) for x in range(10)], store).remaining == 0
