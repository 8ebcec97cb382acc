"""`lbopt study scaling` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import pytest

SMALL = ("-G", 2, "-G", 3, "-B", 2, "-B", 4, "--p", 0.4, "--s-max", 4, "-p", "fcfs", "-p", "bf-io-replete")


@pytest.fixture
def scaling(type_in):
    return lambda *words: type_in("study", "scaling", *words)


@pytest.mark.more
@pytest.mark.jit
def test_from_end_to_end(scaling, here):
    code, shown, heard = scaling(*SMALL, "--seed", 1, "-o", "out", "--store", "s.sqlite")
    assert code == 0, heard
    for title in ("Exponents", "Imbalance", "The exact rule against the floor of Theorem 2"):
        assert title in shown
    assert "tables and pictures: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert {"scaling.csv", "exponents.csv", "imbalance.png", "imbalance.svg"} < set(run["files"])
    assert run["configuration"]["seed"] == 1
    with (here / "out" / "scaling.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8
    files = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"}
    code, _, _ = scaling(*SMALL, "--seed", 1, "-o", "again", "--store", "s.sqlite", "--collect-only")
    assert code == 0
    assert {path.name: path.read_bytes() for path in (here / "again").iterdir() if path.name != "run.json"} == files


@pytest.mark.jit
def test_so_many_ends_a_worker(scaling):
    code, shown, _ = scaling("-G", 2, "-B", 4, "-B", 8, "--ends", 1, "-p", "fcfs")
    assert code == 0
    assert "p = 1 / B" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--p", 0), "p is 0.0; expected a probability between 0 and 1"),
        (
            ("--s-max", 1),
            "s_max is 1; expected 2 to 1,000,000 tokens: prompts that do not vary leave",
        ),
        (("-G", 1), "workers are 1; expected at least 2 each"),
        (("--pool", 0), "pool is 0.0; expected 1 to 1000 times the ends of a step"),
        (("--batches", 5), "batches is 5; expected at least 20, fewer give no error to trust"),
        (("--time-limit", -1), "time_limit is -1.0; expected seconds above 0"),
        (
            ("-p", "jsq"),
            "policy 'jsq' binds requests on arrival, and the study compares rules with one pool; try admission=pooled",
        ),
        (("-p", "fcsf"), "unknown policy 'fcsf': did you mean fcfs? (also replay:FILE and file.py:function)"),
        (("-G", 10**6, "-B", 10**5), "the grid's largest cell, G = 1000000, B = 100000 with"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
        (("--collect-only",), "to collect without running needs the store"),
    ],
)
def test_one_sentence(scaling, here, words, said):
    code, shown, heard = scaling(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_nothing_to_collect(scaling, here):
    assert scaling(*SMALL, "--store", "s.sqlite")[0] == 0
    code, shown, heard = scaling("-G", 5, "-B", 5, "-p", "fcfs", "--store", "s.sqlite", "--collect-only", "-o", "out")
    assert code == 0
    assert shown == ""
    assert "1 of 1 results are not in s.sqlite" in heard
    assert not (here / "out").exists()
