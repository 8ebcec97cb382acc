"""`lbopt study locality` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import pytest

from lbopt.studies import running
from lbopt.studies.locality import cell
from lbopt.studies.running import Stored

TINY = ("--prompts", 120, "--seconds", 6, "--warm-up", 2, "--layers", 2, "--rates", 20, "--seeds", 2)


@pytest.fixture
def locality(type_in):
    return lambda *words: type_in("study", "locality", *words)


@pytest.fixture
def rows_of(here):
    def read(folder, name):
        with (here / folder / f"{name}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    return read


@pytest.mark.more
@pytest.mark.jit
def test_from_end_to_end(locality, here, rows_of):
    words = (*TINY, "--store", "s.sqlite")
    code, shown, heard = locality(*words, "-o", "out")
    assert code == 0, heard
    for workload in ("task", "language"):
        for title in ("width of the band", "routers by rate", "eldr by number of decode workers", "clusters of equal"):
            assert f"{workload}: {title}" in shown
    for title in ("Signatures\n", "Clusters, band of 0.1", "Number of decode workers", "Verdicts\n"):
        assert title in shown
    assert "over 2 worlds" in shown
    assert "tables and pictures: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    pictures = {f"{name}.{kind}" for name in ("band", "routers", "pool", "clusters") for kind in ("png", "svg")}
    assert set(run["files"]) == {"claims.csv", "runs.csv", "signatures.csv"} | pictures
    assert run["configuration"]["rates"] == [20.0]
    assert run["worlds"] == {"task": 2, "language": 2}
    runs = rows_of("out", "runs")
    assert {row["fleet"] for row in runs} == {"decoders", "barrier"}
    assert {row["workers"] for row in runs} == {"8", "16", "24"}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in runs)
    claims = rows_of("out", "claims")
    assert all(row["verdict"] for row in claims)
    unanswered = [row["quantity"] for row in claims if not row["ours"]]
    assert all("batch of" in quantity for quantity in unanswered), "120 prompts fill no batch of 128 of one domain"
    files = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"}
    code, _, heard = locality(*words, "--collect-only", "-o", "again")
    assert code == 0, heard
    assert {path.name: path.read_bytes() for path in (here / "again").iterdir() if path.name != "run.json"} == files


@pytest.fixture
def worlds(monkeypatch):
    """The worlds that were run, as (workload, seed); Ctrl-C comes when `limit` of them have ended."""
    seen = []
    measure = cell.measure

    def watched(**given):
        if len(seen) == watched.limit:
            raise KeyboardInterrupt
        seen.append((given["workload"], given["seed"]))
        return measure(**given)

    watched.limit = None
    monkeypatch.setattr(cell, "measure", watched)
    return seen, watched


@pytest.mark.jit
def test_a_store_is_gone_on_with(locality, here, worlds):
    """The second world is added to the first, which is kept and not run again."""
    seen, _ = worlds
    words = ("clusters", "--workload", "task", *TINY, "--store", "s.sqlite")
    code, shown, heard = locality(*words, "--seeds", 1)
    assert code == 0, heard
    assert "One world: no interval." in shown
    code, shown, heard = locality(*words)
    assert code == 0, heard
    assert seen == [("task", 0), ("task", 1)]
    assert "over 2 worlds" in shown
    assert "language" not in shown


@pytest.mark.more
@pytest.mark.jit
def test_ctrl_c_keeps_the_worlds_that_have_ended(locality, here, worlds):
    """Tables and folder of the first world, exit code 130, and the same command goes on."""
    seen, watched = worlds
    watched.limit = 1
    words = ("band", *TINY, "--store", "s.sqlite")
    code, shown, heard = locality(*words, "-o", "out")
    assert code == 130
    assert "interrupted: 1 of 4 tasks have ended; s.sqlite keeps them, and the same command goes on" in heard
    assert "task: width of the band" in shown
    assert "language" not in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert (run["interrupted"], run["worlds"]) == (True, {"task": 1})
    watched.limit = None
    code, _, heard = locality(*words, "-o", "out")
    assert code == 0, heard
    assert sorted(seen) == [("language", 0), ("language", 1), ("task", 0), ("task", 1)]
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is False


def test_interrupted_before_anything_ended(locality, here, monkeypatch):
    monkeypatch.setattr(
        running,
        "run_stored",
        lambda tasks, **_: Stored(answers={}, failures={}, missing=(), interrupted=True, notes=("interrupted",)),
    )
    code, shown, heard = locality("band", "-o", "out")
    assert (code, shown) == (130, "")
    assert "interrupted" in heard
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("routrs",), "unknown item 'routrs': did you mean routers?"),
        (("--workload", "tasks"), "unknown workload 'tasks': did you mean task?"),
        (("--rates", 0), "rates are 0.0; expected requests a second"),
        (("--seconds", 20, "--warm-up", 30), "the warm-up takes 30 s of 20 s; expected less than all"),
        (("--prompts", 50), "prompts is 50; expected at least 100"),
        (("--layers", 0), "layers is 0; expected at least 1"),
        (("--seeds", 0), "seeds is 0; expected at least 1"),
        (("--seed", -1), "seed is -1; expected 0 or more"),
        (("--engine", "jobib"), "unknown engine 'jobib': did you mean joblib?"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
        (("--collect-only",), "to collect without running needs the store"),
    ],
)
def test_one_sentence(locality, here, words, said):
    code, shown, heard = locality(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_the_help_says_how_long_it_takes(locality):
    code, shown, _ = locality("--help")
    assert code == 0
    text = " ".join(shown.split())
    assert "11 s a world and workload" in text
    assert "Example" in text
    for name in ("signatures", "routers", "band", "clusters", "pool", "barrier"):
        assert name in text
