"""A store as a table: every value is in it, none is changed, and the file is there whole or not at all."""

import json
import sys

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runner.processes import RUN, wait_for_rows

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner import Outcome, Store, StoreError, Task, export_store, run_tasks
from lbopt.runner.export import frame_of

ENDS = ["failure.kind", "failure.exception", "failure.message", "attempts", "seconds", "finished"]


def put(store, parameters, answer, seed=None):
    task = Task("runner.jobs:echo", parameters, seed)
    store.put(task, Outcome(key=task.key, answer=json.dumps(answer), seconds=0.5), {"engine": "serial"})
    return task


@pytest.fixture
def filled(tmp_path):
    """The path of a store of one nested answer, one scalar, one failure."""
    with Store(tmp_path / "store.sqlite") as store:
        put(store, {"x": 1, "deep": {"a.b": "ü", "": 2}}, {"times": {"median": 1, "all": [1, 2]}, "none": {}}, 7)
        put(store, {"x": 2.5}, "text", 2**80)
        run_tasks([Task("runner.jobs:fails_until", {"there": str(tmp_path / "never")}, None)], store)
    return tmp_path / "store.sqlite"


def test_columns(filled):
    with Store(filled, read_only=True) as store:
        frame = store.to_frame()
    names = list(frame.columns)
    assert names[:2] == ["key", "function"]
    assert {'parameters.deep."a.b"', 'parameters.deep.""', "parameters.x", "parameters.there"} == set(
        names[2 : names.index("seed")]
    )
    assert names[names.index("seed") + 1] == "status"
    assert names[names.index(ENDS[0]) :][: len(ENDS)] == ENDS
    assert {"provenance.engine", "provenance.lbopt", "provenance.python"} <= set(names)
    rows = {row["parameters.x"]: row for row in frame.to_dict("records")}
    deep = rows[1.0]
    assert (deep["answer.times.median"], deep["answer.times.all"], deep["answer.none"]) == (1, "[1,2]", "{}")
    assert (deep["seed"], deep["status"], deep["attempts"], deep["seconds"]) == ("7", "done", 1, 0.5)
    assert (rows[2.5]["answer"], rows[2.5]["seed"]) == ("text", str(2**80))
    (failed,) = frame[frame["status"] == "failed"].to_dict("records")
    assert (failed["failure.kind"], failed["failure.exception"]) == ("raised", "ArithmeticError")
    assert failed["failure.message"] == "not yet: \\udcff\\x00"
    assert pandas.isna(failed["answer"])


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)


def leaves(value, name="answer"):
    """The naive twin: paths as tuples, so that none can be mistaken for another."""
    if isinstance(value, dict) and value:
        return {path: leaf for key, entry in value.items() for path, leaf in leaves(entry, (name, key)).items()}
    return {name: value}


@settings(max_examples=25)
@given(answers=st.lists(VALUES, min_size=1, max_size=4))
def test_no_value_is_lost_or_changed(tmp_path_factory, answers):
    """As many columns as there are paths; both formats give the table back; numbers are the same numbers."""
    with Store(tmp_path_factory.mktemp("s") / "store.sqlite") as store:
        tasks = [put(store, {"n": number}, answer) for number, answer in enumerate(answers)]
        frame = frame_of(store.rows()).set_index("key", drop=False)
        again = export_store(store.path, "parquet")[0]
        assert pandas.read_parquet(again).equals(frame.reset_index(drop=True))
    mine = [name for name in frame.columns if name == "answer" or name.startswith("answer.")]
    assert len(mine) == len({path for answer in answers for path in leaves(answer)})
    for task, answer in zip(tasks, answers, strict=True):
        there = [value for name in mine if not pandas.isna(value := frame.loc[task.key, name])]
        wanted = [value for value in leaves(answer).values() if value is not None]
        assert len(there) == len(wanted)
        numbers = [value.item() for value in there if not isinstance(value, str)]
        assert all(any(value == other for other in wanted if not isinstance(other, list | dict)) for value in numbers)


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [
        ([1, None, 2**63 - 1], "Int64", [1, None, 2**63 - 1]),
        ([1, 0.5], "float64", [1.0, 0.5]),
        ([2**60 + 1, 0.5], "str", [str(2**60 + 1), "0.5"]),
        ([2**63], "str", [str(2**63)]),
        ([True, None], "boolean", [True, None]),
        ([True, 1], "str", ["true", "1"]),
        (["1", 1], "str", ['"1"', "1"]),
        (["a", None], "str", ["a", None]),
        ([[1], "x"], "str", ["[1]", '"x"']),
        ([None, None], "str", [None, None]),
    ],
)
def test_types_of_columns(store, values, kind, held):
    for number, value in enumerate(values):
        put(store, {"n": number}, value)
    column = store.to_frame().sort_values("parameters.n")["answer"]
    assert column.dtype == kind
    assert [None if pandas.isna(value) else value for value in column] == held


def test_csv_reads_back(filled, tmp_path):
    place, rows = export_store(filled, "csv", tmp_path / "t.csv")
    assert (place, rows) == (tmp_path / "t.csv", 3)
    with Store(filled, read_only=True) as store:
        frame = store.to_frame()
    assert list(pandas.read_csv(place, dtype=str)["key"]) == list(frame["key"])
    assert list(pandas.read_csv(place).columns) == list(frame.columns)


def test_an_empty_store_has_a_table_without_rows(store):
    frame = store.to_frame()
    assert (len(frame), list(frame.columns)[:2]) == (0, ["key", "function"])


def test_export_while_a_run_goes_on(tmp_path, begin):
    process = begin(RUN, "Serial()")
    wait_for_rows(tmp_path / "store.sqlite", 4)
    assert export_store(tmp_path / "store.sqlite", "csv") == (tmp_path / "store.csv", 4)
    assert process.poll() is None


def test_the_old_table_stays_until_the_new_one_is_whole(filled, monkeypatch):
    place, _ = export_store(filled, "csv")
    before = place.read_bytes()

    def torn(frame, path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(sys.modules["lbopt.runner.export"].FORMATS, "csv", torn)
    with pytest.raises(InputError, match=r"cannot write table '.*store.csv': No space left on device"):
        export_store(filled, "csv")
    assert place.read_bytes() == before
    assert sorted(path.name for path in place.parent.iterdir()) == ["store.csv", "store.sqlite"]


def test_what_cannot_be_exported(filled, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_text("not a store")
    with Store(tmp_path / "empty.sqlite"):
        pass
    before = sorted(tmp_path.iterdir())
    for said, kind, store, to, out in [
        ("unknown format 'parket': did you mean parquet", InputError, filled, "parket", None),
        ("is no store of lbopt's runner", StoreError, other, "csv", None),
        ("there is no store at", StoreError, tmp_path / "absent", "csv", None),
        ("has no results yet; there is nothing to export", InputError, tmp_path / "empty.sqlite", "csv", None),
        ("would take the place of the store itself", InputError, filled, "csv", filled),
        ("is a folder", InputError, filled, "csv", tmp_path),
        ("cannot write table .*absent", InputError, filled, "csv", tmp_path / "absent" / "t.csv"),
        ("cannot write table .*absent", InputError, filled, "parquet", tmp_path / "absent" / "t.parquet"),
    ]:
        with pytest.raises(kind, match=said):
            export_store(store, to, out)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'lbopt\[parquet\]'; csv needs none"):
        export_store(filled, "parquet")
    assert sorted(tmp_path.iterdir()) == before
