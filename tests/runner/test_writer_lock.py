"""One writer at a time; who does not get the lock leaves nothing open behind."""

import sqlite3

import pytest

from lbopt.runner import StoreError
from lbopt.runner.locks import WriterLock


@pytest.fixture
def opened(monkeypatch):
    """Connections that were opened, in this order."""
    made, connect = [], sqlite3.connect

    def noted(*given, **options):
        made.append(connect(*given, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return made


def is_open(connection):
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_the_second_writer_is_refused_until_the_first_has_gone(tmp_path, opened):
    first = WriterLock(tmp_path / "s.sqlite")
    assert (tmp_path / "s.sqlite-lock").exists()
    with pytest.raises(StoreError, match="is being written by another run; wait for that to end"):
        WriterLock(tmp_path / "s.sqlite")
    assert [is_open(connection) for connection in opened] == [True, False]
    first.release()
    first.release()
    assert not (tmp_path / "s.sqlite-lock").exists()
    WriterLock(tmp_path / "s.sqlite").release()
    assert not any(map(is_open, opened))


def test_a_released_lock_does_not_remove_that_of_the_next(tmp_path):
    first = WriterLock(tmp_path / "s.sqlite")
    first.release()
    second = WriterLock(tmp_path / "s.sqlite")
    first.release()
    assert (tmp_path / "s.sqlite-lock").exists()
    second.release()


def test_a_lock_that_cannot_be_is_named(tmp_path, opened):
    (tmp_path / "s.sqlite-lock").mkdir()
    with pytest.raises(StoreError, match=r"store .*s\.sqlite cannot be written: .*s\.sqlite-lock: unable to open"):
        WriterLock(tmp_path / "s.sqlite")
    (tmp_path / "t.sqlite-lock").write_text("this is no database, and longer than its header" * 10)
    with pytest.raises(StoreError, match=r"store .*t\.sqlite cannot be written: .*file is not a database"):
        WriterLock(tmp_path / "t.sqlite")
    assert not any(map(is_open, opened))


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "s.sqlite-lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link; remove it"):
        WriterLock(tmp_path / "s.sqlite")
    assert not (tmp_path / "elsewhere").exists()
