"""`lbopt study placement` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import pytest

SMALL = (
    *("-R", 2, "-R", 4, "--worlds", 1, "--clusters", 3, "-E", 8, "--top-k", 2, "--layers", 2),
    *("--requests", 60, "--batch", 8, "--draws", 20, "-k", "task", "-k", "uniform"),
)


@pytest.fixture
def placement(type_in):
    return lambda *words: type_in("study", "placement", *words)


@pytest.mark.jit
def test_from_end_to_end(placement, here):
    code, shown, heard = placement(*SMALL, "--seed", 1, "-o", "out", "--store", "s.sqlite")
    assert code == 0, heard
    for title in ("Greedy against exact", "Active experts of the busiest rank"):
        assert title in shown
    assert "tables and picture: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert set(run["files"]) == {"placement.csv", "gaps.png", "gaps.svg"}
    assert run["configuration"]["seed"] == 1
    with (here / "out" / "placement.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 12
    files = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"}
    assert placement(*SMALL, "--seed", 1, "-o", "again", "--store", "s.sqlite", "--collect-only")[0] == 0
    assert {path.name: path.read_bytes() for path in (here / "again").iterdir() if path.name != "run.json"} == files


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-R", 7), "ranks are 7; expected 2 or more, a divisor of the 128 experts"),
        (("-k", "tusk"), "unknown kind 'tusk': did you mean task?"),
        (("--resolution", 0), "resolution is 0.0; expected 1e-9 to 1 of an expert"),
        (("--time-limit", -1), "time_limit is -1.0; expected seconds above 0"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
        (("--collect-only",), "to collect without running needs the store"),
    ],
)
def test_one_sentence(placement, here, words, said):
    code, shown, heard = placement(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_nothing_to_collect(placement, here):
    assert placement(*SMALL, "--store", "s.sqlite")[0] == 0
    code, shown, heard = placement("-R", 8, "-k", "uniform", "--worlds", 1, "--store", "s.sqlite", "--collect-only")
    assert (code, shown) == (0, "")
    assert "1 of 1 results are not in s.sqlite" in heard
