"""Damaged stores: no wrong answer, no row lost in silence, no error without a sentence; sound rows stay usable."""

import logging
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from lbopt.exceptions import InputError, LbOptError
from lbopt.runner import DamagedRow, DamagedRowError, Store, StoreError, Summary, Task, collect, export_store, run_tasks
from lbopt.runner.row import COLUMNS as ROW
from lbopt.runner.row import checked_row, seal_of
from lbopt.runner.store import check_store, rescue

STORED = sorted((Path(__file__).resolve().parents[1] / "stored" / "stores").glob("*.sqlite"))

#: Some long enough for pages of their own, one that fails.
TASKS = [Task("runner.jobs:echo", {"x": x, "text": "é" * (x % 4) * 250}, x) for x in range(9)]
TASKS.append(Task("runner.jobs:leaves", {"how": "exit"}, None))


def plain(row):
    return (row.task.text, row.status, row.answer, row.failure, row.attempts, row.seconds, row.provenance)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store, and its rows by key."""
    path = tmp_path_factory.mktemp("sound") / "store.sqlite"
    with Store(path) as store:
        run_tasks(TASKS, store)
        return path, {row.task.key: plain(row) for row in store.rows()}


@pytest.fixture
def shm(tmp_path):
    """A folder in memory where there is one: hundreds of stores are flushed there at once."""
    place = Path("/dev/shm") / f"lbopt-{tmp_path.name}-{random.SystemRandom().getrandbits(64):x}"
    if not place.parent.is_dir():
        yield tmp_path
        return
    place.mkdir()
    yield place
    shutil.rmtree(place)


def sql(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints=ON")
    connection.execute("PRAGMA writable_schema=ON")
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.close()


def flipped(draw, content):
    for _ in range(draw.choice((1, 1, 1, 3, 20))):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def overwritten(draw, content):
    start = draw.randrange(len(content))
    size = draw.choice((1, 4, 30, 500))
    content[start : start + size] = draw.randbytes(min(size, len(content) - start))


def truncated(draw, content):
    del content[draw.randrange(len(content)) :]


def zeroed_page(draw, content):
    page = draw.randrange(len(content) // 4096) * 4096
    content[page : page + 4096] = bytes(4096)


def swapped_pages(draw, content):
    one, two = (draw.randrange(1, len(content) // 4096) * 4096 for _ in range(2))
    content[one : one + 4096], content[two : two + 4096] = content[two : two + 4096], content[one : one + 4096]


def lengthened(draw, content):
    content += draw.randbytes(draw.choice((1, 4096)))


BYTES = (flipped, flipped, overwritten, overwritten, truncated, zeroed_page, swapped_pages, lengthened)

#: Values of wrong types and contents, in any column.
ODD = (None, "", "x", "[", "[" * 5000, "1e999", "NaN", "9" * 5000, b"\xff\x00", 7, -1, 2**62, 0.5, float("inf"))
COLUMNS = ("key", "task", "status", "answer", "kind", "message", "attempts", "seconds", "provenance", "seal")


def values(draw, path):
    column, value = draw.choice(COLUMNS), draw.choice(ODD)
    many = draw.random() < 0.2
    where = "" if many and column != "key" else f" WHERE rowid = {draw.randrange(1, 11)}"
    # NOT NULL cannot be lifted for one statement; the refusal leaves the store as it was
    try:
        sql(path, (f"UPDATE results SET {column} = ?{where}", value))
    except sqlite3.IntegrityError:
        sql(path, (f"UPDATE results SET {column} = ?{where}", "y"))


def schema(draw, path):
    sql(
        path,
        draw.choice(
            (
                ("ALTER TABLE results DROP COLUMN finished",),
                ("ALTER TABLE results RENAME TO others",),
                ("ALTER TABLE results RENAME COLUMN answer TO reply",),
                ("ALTER TABLE results ADD COLUMN more TEXT",),
                ("CREATE TABLE others (x)",),
                ("CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",),
                ("CREATE VIEW v AS SELECT * FROM results",),
                ("DROP TABLE results",),
                ("PRAGMA user_version = 1",),
                ("PRAGMA user_version = 0",),
                ("PRAGMA application_id = 1",),
                ("UPDATE sqlite_master SET sql = 'CREATE TABLE results (' WHERE type = 'table'",),
                ("UPDATE sqlite_master SET rootpage = 1 WHERE type = 'table'",),
                ("PRAGMA journal_mode = WAL",),
            )
        ),
    )


def mutant(draw, source, path):
    shutil.copyfile(source, path)
    how = draw.random()
    if how < 0.7:
        content = bytearray(source.read_bytes())
        draw.choice(BYTES)(draw, content)
        path.write_bytes(content)
    elif how < 0.9:
        values(draw, path)
    else:
        schema(draw, path)


def told(error):
    text = str(error)
    assert text.isprintable(), text
    assert len(text) <= 500, text


def survives(path, draw, truth, *, sealed=True):
    """Read, check, rescue and write the store; compare whatever is given back with the truth."""
    # an empty file becomes a store: nothing tells it from a new one
    empty = path.stat().st_size == 0
    try:
        with Store(path, read_only=True) as store:
            rows = {row.task.key: plain(row) for row in store.rows()}
            damaged = store.damaged()
            assert len(rows) + len(damaged) == len(truth)
            found = collect(TASKS, store)
            assert len(found) == len(TASKS)
        assert not sealed or rows.items() <= truth.items()
    except LbOptError as error:
        told(error)
    try:
        found = check_store(path)
        assert found.structure is not None or found.sound + len(found.damaged) == len(truth)
        assert [str(row) for row in found.damaged if not str(row).isprintable()] == []
        if draw.random() < 0.3:
            new = path.with_name("new.sqlite")
            rescue(found, new)
            with Store(new, read_only=True) as store:
                rows = {row.task.key: plain(row) for row in store.rows()}
            assert len(rows) == found.sound
            assert not sealed or rows.items() <= truth.items()
            new.unlink()
    except LbOptError as error:
        told(error)
    try:
        with Store(path) as store:
            run_tasks(TASKS, store)
            rows = {row.task.key: plain(row)[:4] for row in store.rows()}
        assert not sealed or rows == {key: row[:4] for key, row in truth.items()}
        return not empty
    except LbOptError as error:
        told(error)
        return False


def attack(sound, folder, count, seed):
    source, truth = sound
    draw, usable = random.Random(seed), 0
    for number in range(count):
        path = folder / f"{number}.sqlite"
        mutant(draw, source, path)
        usable += survives(path, draw, truth)
        for rest in folder.glob(f"{number}.sqlite*"):
            assert not rest.name.endswith(("-lock", "-journal"))
            rest.unlink()
    return usable


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR)


def test_damaged_stores(sound, shm):
    """Most mutants stay usable in place, because their damage is inside a row."""
    assert attack(sound, shm, 250, seed=20) > 80


@pytest.mark.slow
def test_many_damaged_stores(sound, shm):
    """About three minutes."""
    assert attack(sound, shm, 10_000, seed=21) > 3_000


def test_damaged_stores_of_version_1(shm):
    """Without hashes an altered answer can look sound; everything else holds."""
    draw = random.Random(22)
    for number in range(60):
        path = shm / f"{number}.sqlite"
        source = draw.choice(STORED)
        with Store(source, read_only=True) as store:
            truth = {row.task.key: plain(row) for row in store.rows()}
        content = bytearray(source.read_bytes())
        draw.choice(BYTES)(draw, content)
        path.write_bytes(content)
        try:
            with Store(path, read_only=True) as store:
                assert len(list(store.rows())) + len(store.damaged()) == len(truth)
            check_store(path)
            Store(path).close()
        except LbOptError as error:
            told(error)


def test_a_damaged_row_is_named_and_run_again(sound, tmp_path, caplog):
    """It is never taken for an answer; the others are, and one more run mends the store."""
    caplog.set_level(logging.WARNING)
    path = tmp_path / "store.sqlite"
    shutil.copyfile(sound[0], path)
    bad = TASKS[3]
    sql(path, ("UPDATE results SET answer = replace(answer, '\"x\":3', '\"x\":4') WHERE key = ?", bad.key))
    with Store(path, read_only=True) as store:
        assert [(row.key, row.why) for row in store.damaged()] == [(bad.key, "its hash is not that of its content")]
        with pytest.raises(DamagedRowError, match="damaged row of Task"):
            store.answer(bad)
        found = collect(TASKS, store)
        assert (found.missing, found.damaged) == ((bad,), (bad,))
        assert len(list(store.rows())) == len(TASKS) - 1
    assert "damaged rows of store" in caplog.text
    assert export_store(path, "csv")[1] == len(TASKS) - 1
    with Store(path) as store:
        assert run_tasks(TASKS[:-1], store) == Summary(computed=1, skipped=len(TASKS) - 2)
        assert store.answer(bad)["x"] == 3
        assert store.get(bad).attempts == 1
        assert store.damaged() == []


def test_a_whole_row_of_another_task_is_noticed(sound, tmp_path):
    """A row whose answer and seal were taken from another does not fit its key."""
    path = tmp_path / "store.sqlite"
    shutil.copyfile(sound[0], path)
    sql(
        path,
        ("UPDATE results SET (answer, seal) = (SELECT answer, seal FROM results WHERE rowid = 2) WHERE rowid = 1",),
    )
    with Store(path, read_only=True) as store:
        assert len(store.damaged()) == 1


def test_a_failure_without_its_reason_is_damage(sound):
    """In a row whose hash is right: nobody but a faulty writer makes one."""
    connection = sqlite3.connect(sound[0])
    failed = connection.execute(f"SELECT {', '.join(ROW)} FROM results WHERE status = 'failed'").fetchone()
    connection.close()
    assert checked_row(failed, seal_of(failed)).failure is not None
    for name in ("kind", "exception", "message", "traceback"):
        values = [None if column == name else value for column, value in zip(ROW, failed, strict=True)]
        damaged = checked_row(values, seal_of(values))
        assert isinstance(damaged, DamagedRow)
        assert damaged.why == "it does not say why there is no answer"


@pytest.mark.parametrize("source", STORED, ids=lambda path: path.stem)
def test_a_store_of_version_1_is_migrated_when_it_is_written(source, tmp_path):
    """Read as it is; then every row gets its hash, and nothing else changes."""
    path = tmp_path / "store.sqlite"
    shutil.copyfile(source, path)
    with Store(path, read_only=True) as store:
        before = [plain(row) for row in store.rows()]
    assert path.read_bytes() == source.read_bytes()
    assert check_store(path).version == 1
    Store(path).close()
    with Store(path, read_only=True) as store:
        assert [plain(row) for row in store.rows()] == before
    after = check_store(path)
    assert (after.version, after.sound, after.damaged, after.structure) == (2, len(before), (), None)


def test_a_row_that_was_damaged_before_the_migration_gets_no_hash(tmp_path):
    path = tmp_path / "store.sqlite"
    shutil.copyfile(STORED[0], path)
    sql(path, ("UPDATE results SET answer = '[' WHERE rowid = 1",))
    Store(path).close()
    assert [row.why for row in check_store(path).damaged] == ["its hash is not that of its content"]


def test_rows_of_a_damaged_file_are_saved(sound, tmp_path):
    """A page of rows is lost; the others move to a new store, and the run that filled it goes on there."""
    path, new = tmp_path / "store.sqlite", tmp_path / "new.sqlite"
    content = bytearray(sound[0].read_bytes())
    content[-4096:] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="verify FILE --rescue NEW"):
        Store(path)
    found = check_store(path)
    assert found.structure is not None
    assert found.sound + len(found.damaged) == len(TASKS)
    assert found.sound >= 5
    rescue(found, new)
    with Store(new) as store:
        assert run_tasks(TASKS[:-1], store).skipped >= 4
    with pytest.raises(InputError, match="exists; give the name of a new file"):
        rescue(found, new)
    assert path.read_bytes() == bytes(content)


def test_a_planted_lock_is_not_followed(tmp_path):
    (tmp_path / "store.sqlite-lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link; remove it"):
        Store(tmp_path / "store.sqlite")
    assert not (tmp_path / "elsewhere").exists()
