"""`lbopt study batches` as a terminal sees it, and `lbopt verify` of its folder."""

from __future__ import annotations

import json

import pytest

SMALL = (
    *("study", "batches", "burstgpt-like", "-n", 300, "--states", 3, "--instances", 2, "-G", 3),
    *("--chunk", 1024, "--load", 0.5, "--time-limit", 20),
)


def test_from_end_to_end(type_in, here):
    code, shown, heard = type_in(*SMALL, "-p", "pbaa", "-p", "pbaa:whole=yes", "-p", "least-loaded", "-o", "out")
    assert code == 0, heard
    assert "One batch: gap to the optimum, over all batches" in shown
    assert "pbaa:whole=yes" in shown
    assert "tables, batches and picture: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["format"] == "lbopt-batch-gap"
    assert set(run["files"]) == {"batches.csv", "gap.csv", "batches.jsonl", "gaps.png", "gaps.svg"}
    asked = run["configuration"]
    assert (asked["instances"], asked["units"], asked["chunk"], asked["load"]) == (2, 3, 1024, 0.5)
    assert asked["behaviours"] == ["pbaa", "round-robin"]
    code, shown, heard = type_in("verify", "out")
    assert (code, shown) == (0, "identical: every number but the times\n"), heard


def test_rerun_names_what_differs(type_in, here):
    assert type_in(*SMALL, "--behaviour", "pbaa", "-o", "out")[0] == 0
    path = here / "out" / "batches.csv"
    path.write_text(path.read_text().replace(",proved,", ",open,", 1))
    code, shown, _ = type_in("verify", "out")
    assert code == 1
    assert shown.startswith("differs: batches.csv row ")


def test_defaults(type_in, here):
    assert type_in("study", "batches", "-n", 400, "--states", 1)[0] == 0
    asked = json.loads((here / "lbopt-batch-gap" / "run.json").read_text())["configuration"]
    assert (asked["instances"], asked["units"], asked["chunk"], asked["load"]) == (3, 8, 3072, 0.8)
    assert (asked["rules"], asked["time_limit"]) == (["pbaa", "longest-first", "round-robin"], 2.0)
    assert type_in("study", "batches", "-n", 400, "--states", 1, "--out", "")[0] == 0
    assert [path.name for path in here.iterdir()] == ["lbopt-batch-gap"]


def test_ctrl_c_keeps_what_has_ended(type_in, here, monkeypatch):
    from lbopt.studies.batches import study

    calls, known = iter(range(100)), study.judge

    def judge(*arguments):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return known(*arguments)

    monkeypatch.setattr(study, "judge", judge)
    code, shown, _ = type_in(*SMALL, "-o", "out")
    assert code == 130
    assert "2 batches: both optima" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["interrupted"] is True
    assert len((here / "out" / "batches.jsonl").read_text().splitlines()) == 2
    code, shown, heard = type_in("verify", "out")
    assert code == 2 and "holds an interrupted study; run its command again" in heard


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "slots=9"), "unknown setting 'slots'"),
        (("-p", "iqr"), "unknown allocation 'iqr'"),
        (("--load", 0), "load is 0.0; expected a share above 0"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
    ],
)
def test_one_sentence(type_in, here, words, said):
    code, shown, heard = type_in("study", "batches", *words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []
