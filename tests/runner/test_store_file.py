"""Files that are no store are refused and left as they are; a store has one writer, and readers meanwhile."""

import sqlite3

import pytest
from runner.processes import RUN, start, wait_for_rows

from lbopt.exceptions import InputError
from lbopt.runner import Outcome, Store, StoreError, Task, run_tasks
from lbopt.runner.store_file import STORE_VERSION

TASKS = [Task("runner.jobs:big", {"x": x}, None) for x in range(20)]


def sql(path, *statements):
    """Change a file behind the store's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def written(path):
    with Store(path) as store:
        run_tasks(TASKS, store)


def text(path):
    path.write_text("not a store\n" * 100)


def one_byte(path):
    path.write_bytes(b"S")


def torn_header(path):
    path.write_bytes(b"SQLite format 3\0" + bytes(10))


def foreign(path):
    sql(path, "CREATE TABLE results (key TEXT)")


def foreign_in_wal_mode(path):
    sql(path, "PRAGMA journal_mode=WAL", "CREATE TABLE results (key TEXT)")


def other_application(path):
    written(path)
    sql(path, "PRAGMA application_id=7")


def newer(path):
    written(path)
    sql(path, f"PRAGMA user_version={STORE_VERSION + 1}")


def cut(path):
    written(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def overwritten(path):
    written(path)
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 8192):
        content[page : page + 2048] = b"x" * 2048
    path.write_bytes(content)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (text, "is no store"),
        (one_byte, "is no store"),
        (torn_header, "is no store"),
        (foreign, "is no store"),
        (foreign_in_wal_mode, "is no store"),
        (other_application, "is no store"),
        (newer, f"of version {STORE_VERSION + 1}, and this lbopt reads versions up to {STORE_VERSION}"),
        (cut, "damaged"),
        (overwritten, "damaged"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path, make, said, read_only):
    """One sentence, the same bytes, nothing beside it."""
    path = tmp_path / "store.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=said) as told, Store(path, read_only=read_only) as store:
        list(store.rows())
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_places_where_no_store_can_be(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        Store(tmp_path / "absent" / "store.sqlite")
    with pytest.raises(InputError, match="is not a file"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "store.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(tmp_path):
    """As a file made by mktemp does; a reader has nothing to read in it."""
    path = tmp_path / "odd name %41 #?ü.sqlite"
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        Store(path, read_only=True)
    written(path)
    with Store(path, read_only=True) as store:
        assert len(store) == len(TASKS)
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_cannot_write(tmp_path):
    written(tmp_path / "store.sqlite")
    with Store(tmp_path / "store.sqlite", read_only=True) as store:
        with pytest.raises(InputError, match="open to read only"):
            store.put(TASKS[0], Outcome(key=TASKS[0].key, answer="1", seconds=0.0))
        with pytest.raises(InputError, match="open to read only"):
            run_tasks(TASKS, store)


def test_a_second_writer_in_the_same_process_is_refused(tmp_path):
    """Also under another name of the file; the first goes on, and when it has closed, the next may write."""
    path = tmp_path / "store.sqlite"
    (tmp_path / "link.sqlite").symlink_to(path)
    with Store(path) as store:
        for name in (path, tmp_path / "link.sqlite", tmp_path / "." / "store.sqlite"):
            with pytest.raises(StoreError, match="is being written by another run"):
                Store(name)
        with Store(path, read_only=True) as reader:
            run_tasks(TASKS[:3], store)
            assert len(reader) == 3
    written(path)


def test_a_second_writer_in_another_process_is_refused(tmp_path, begin):
    """At once, with a clear error, and the first is not disturbed. Readers may look on."""
    path = tmp_path / "store.sqlite"
    first = begin(RUN, "Serial()")
    wait_for_rows(path, 4)
    second = begin(RUN, "Serial()")
    _, said = second.communicate(timeout=20)
    assert second.returncode == 1
    assert "StoreError: store" in said
    assert "is being written by another run; wait for that to end" in said
    with pytest.raises(StoreError, match="is being written"):
        Store(path)
    assert first.poll() is None
    (tmp_path / "open").touch()
    seen = 0
    while first.poll() is None:  # look on, all the time, until it ends
        with Store(path, read_only=True) as store:
            assert seen <= (seen := len(list(store.rows())))
    assert first.communicate()[1] == ""
    assert (tmp_path / "calls.txt").read_text().split() == [str(x) for x in range(10)]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["calls.txt", "open", "store.sqlite"]


def test_of_many_that_begin_together_one_writes(tmp_path):
    """Four writers at the same moment: one has the store, three are refused."""
    code = (
        "import sys; from lbopt.runner import *; sys.stdin.readline()\n"
        "try:\n    store = Store('store.sqlite')\nexcept StoreError:\n    print('refused'); sys.exit()\n"
        "print('writes', flush=True); sys.stdin.readline(); store.close()"
    )
    several = [start(code, cwd=tmp_path) for _ in range(4)]
    for process in several:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.stdout.readline().strip() for process in several)
    assert said == ["refused"] * 3 + ["writes"]
    for process in several:
        process.communicate("end\n")
        assert process.returncode == 0
    written(tmp_path / "store.sqlite")


def test_a_lock_left_by_a_killed_writer_locks_nobody_out(tmp_path, begin):
    """kill -9 leaves the empty file and perhaps half a write; neither is in the way."""
    process = begin(RUN, "Serial()")
    wait_for_rows(tmp_path / "store.sqlite", 4)
    process.kill()
    process.wait()
    assert (tmp_path / "store.sqlite-lock").exists()
    written(tmp_path / "store.sqlite")
    assert not (tmp_path / "store.sqlite-lock").exists()
