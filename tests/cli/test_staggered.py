"""`lbopt study staggered` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import pytest

from lbopt.studies import running
from lbopt.studies.running import Stored
from lbopt.studies.staggered import ITEMS, PLACES
from lbopt.studies.staggered.items import limit

TINY = ("--place", "short-3k", "--requests", 500, "--waits", 1000, "--seeds", 2)
CONTENDERS = 11


@pytest.fixture
def staggered(type_in):
    return lambda *words: type_in("study", "staggered", *words)


@pytest.fixture
def rows_of(here):
    def read(folder, name):
        with (here / folder / f"{name}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    return read


@pytest.mark.more
@pytest.mark.jit
def test_from_end_to_end(staggered, here, rows_of):
    words = ("law", "load", "limit", "split", *TINY, "--instances", 2, "--store", "s.sqlite")
    code, shown, heard = staggered(*words, "-o", "out")
    assert code == 0, heard
    for title in (
        *("Waiting law: N × mean wait", "short-3k: mean time to first token by load, against jsq"),
        *("short-3k: the highest rate", "What is worth what", "law: printed and ours", "Verdicts by baseline"),
    ):
        assert title in shown
    assert "over 2 seeds" in shown
    assert "short-5k" not in shown
    assert "tables and pictures: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    pictures = {f"{name}.{kind}" for name in ("waits", "load", "limit") for kind in ("png", "svg")}
    assert set(run["files"]) == {"claims.csv", "law.csv", "load.csv", "limit.csv", "split.csv"} | pictures
    assert run["configuration"]["places"] == ["short-3k"]
    assert run["seeds"] == {"law": 2, "load": 2, "limit": 2, "split": 2}
    limits = rows_of("out", "limit")
    assert len(limits) == CONTENDERS
    assert all(float(row["rate_low"]) <= float(row["rate_mean"]) <= float(row["rate_high"]) for row in limits)
    assert all(float(row["ttft_mean"]) <= 0.8 for row in limits)
    assert all(row["verdict"] for row in rows_of("out", "claims"))
    files = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"}
    code, _, heard = staggered(*words, "--collect-only", "-o", "again")
    assert code == 0, heard
    assert {path.name: path.read_bytes() for path in (here / "again").iterdir() if path.name != "run.json"} == files


@pytest.fixture
def parts(monkeypatch):
    """The parts of item limit that were run, as (contender, seed); Ctrl-C comes when `limit` of them have ended."""
    seen = []
    measure = limit.measure

    def watched(**given):
        if len(seen) == watched.limit:
            raise KeyboardInterrupt
        seen.append((given["contender"], given["seed"]))
        return measure(**given)

    watched.limit = None
    monkeypatch.setattr(limit, "measure", watched)
    return seen, watched


@pytest.mark.more
@pytest.mark.jit
def test_a_store_is_gone_on_with(staggered, here, parts):
    """The second seed is added to the first, which is kept and not run again."""
    seen, _ = parts
    words = ("limit", *TINY, "--store", "s.sqlite")
    code, shown, heard = staggered(*words, "--seeds", 1)
    assert code == 0, heard
    assert "One seed: no interval." in shown
    code, shown, heard = staggered(*words)
    assert code == 0, heard
    assert [seed for _, seed in seen] == [0] * CONTENDERS + [1] * CONTENDERS
    assert "over 2 seeds" in shown


@pytest.mark.more
@pytest.mark.jit
def test_ctrl_c_keeps_the_parts_that_have_ended(staggered, here, parts):
    """Tables and folder of what there is, exit code 130, and the same command goes on."""
    seen, watched = parts
    watched.limit = CONTENDERS + 2
    words = ("limit", *TINY, "--store", "s.sqlite")
    code, shown, heard = staggered(*words, "-o", "out")
    assert code == 130
    assert "interrupted: 13 of 22 tasks have ended; s.sqlite keeps them, and the same command goes on" in heard
    assert "short-3k: the highest rate" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert (run["interrupted"], run["seeds"]["limit"]) == (True, 2)
    assert len(seen) == CONTENDERS + 2
    watched.limit = None
    code, _, heard = staggered(*words, "-o", "out")
    assert code == 0, heard
    assert len(seen) == len(set(seen)) == 2 * CONTENDERS
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is False


def test_interrupted_before_anything_ended(staggered, here, monkeypatch):
    monkeypatch.setattr(
        running,
        "run_stored",
        lambda tasks, **_: Stored(answers={}, failures={}, missing=(), interrupted=True, notes=("interrupted",)),
    )
    code, shown, heard = staggered("load", "-o", "out")
    assert (code, shown) == (130, "")
    assert "interrupted" in heard
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lod",), "unknown item 'lod': did you mean load?"),
        (("--place", "short-3"), "unknown place 'short-3': did you mean short-3k or short-5k?"),
        (("--instances", 0), "instances is 0; expected 1 to 256"),
        (("--instances", 300), "instances is 300; expected 1 to 256"),
        (("--requests", 10), "requests is 10; expected at least 500"),
        (("--waits", 10), "waits is 10; expected at least 1,000"),
        (("--seeds", 0), "seeds is 0; expected at least 1"),
        (("--seed", -1), "seed is -1; expected 0 or more"),
        (("--engine", "jobib"), "unknown engine 'jobib': did you mean joblib?"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
        (("--collect-only",), "to collect without running needs the store"),
    ],
)
def test_one_sentence(staggered, here, words, said):
    code, shown, heard = staggered(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_the_help_says_what_there_is_and_how_long_it_takes(staggered):
    code, shown, _ = staggered("--help")
    assert code == 0
    text = " ".join(shown.split())
    assert "7 minutes a seed" in text
    assert "Example" in text
    for name in (*ITEMS, *PLACES):
        assert name in text
