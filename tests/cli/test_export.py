"""`lbopt export` as a terminal sees it."""

import pandas

from lbopt.runner import Store, Task, run_tasks


def test_export(type_in, here):
    with Store(here / "store.sqlite") as store:
        run_tasks([Task("math:sqrt", {}, None)], store)
    code, shown, said = type_in("export", "store.sqlite", "--to", "parquet", "-o", "t.parquet")
    assert (code, shown, said) == (0, "1 rows: t.parquet\n", "")
    assert list(pandas.read_parquet("t.parquet")["failure.kind"]) == ["raised"]
    assert type_in("export", "store.sqlite")[:2] == (0, "1 rows: store.csv\n")


def test_what_cannot_be_exported(type_in, here):
    (here / "notes.txt").write_text("not a store")
    for words, expected in (
        (("absent.sqlite",), "there is no store at"),
        (("notes.txt",), "is no store of lbopt's runner"),
        (("notes.txt", "--to", "xlsx"), "unknown format 'xlsx': known: parquet, csv"),
    ):
        code, shown, said = type_in("export", *words)
        assert (code, shown) == (2, "")
        assert expected in said
        assert said.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["notes.txt"]
