"""`lbopt study reproduction` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import pytest

from lbopt.studies import running
from lbopt.studies.running import Stored


@pytest.fixture
def reproduction(type_in):
    return lambda *words: type_in("study", "reproduction", *words)


@pytest.mark.more
@pytest.mark.jit
def test_from_end_to_end(reproduction, here):
    words = ("dilution", "kv-spread", "-n", 600, "--seeds", 2, "--store", "s.sqlite")
    code, shown, heard = reproduction(*words, "-o", "out")
    assert code == 0, heard
    for title in ("Overhead dilution of the EP-barrier post", "KV spread of staggered batching", "Verdicts"):
        assert title in shown
    assert "burstgpt-like (stands in)" in shown
    assert "table: out" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert set(run["files"]) == {"reproduction.csv", "dilution.png", "dilution.svg"}
    assert run["configuration"]["items"] == ["dilution", "kv-spread"]
    with (here / "out" / "reproduction.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["item"] for row in rows} == {"dilution", "kv-spread"}
    for row in rows:
        assert (row["why"] == "") == (row["verdict"] == "agrees")
        assert all(
            row[name] for name in ("published", "ours", "requests", "fleet", "arrivals", "dispatch", "criterion")
        )
    before = (here / "out" / "reproduction.csv").read_bytes()
    code, _, _ = reproduction(*words, "--collect-only", "-o", "again")
    assert code == 0
    assert (here / "again" / "reproduction.csv").read_bytes() == before


@pytest.mark.jit
def test_energy_of_a_stand_in_says_what_is_missing(reproduction):
    code, shown, heard = reproduction("energy", "-n", 600, "--seeds", 2)
    assert code == 0, heard
    assert "600 requests, not 100,000" in shown
    assert "name their folder by --logs" in heard
    assert "BF-IO H=0," not in shown


def test_what_is_done_is_kept(reproduction, here, monkeypatch):
    """Ctrl-C: rows that need no run are there, and the exit code says that it was not the whole."""
    monkeypatch.setattr(
        running,
        "run_stored",
        lambda tasks, **_: Stored(answers={}, failures={}, missing=(), interrupted=True, notes=("interrupted",)),
    )
    code, shown, heard = reproduction("dilution", "-n", 600, "-o", "out")
    assert code == 130
    assert "from its gain at b = 0" in shown
    assert "interrupted" in heard
    assert (here / "out" / "reproduction.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("energie",), "unknown item 'energie': did you mean energy?"),
        (("-n", 10), "requests is 10; expected at least 500, fewer fill no fleet"),
        (("--seeds", 0), "seeds is 0; expected 1 to 1,000"),
        (("--seed", -1), "seed is -1; expected 0 or more"),
        (("--burstgpt", "missing.csv"), "missing.csv"),
        (("energy", "--logs", "."), "are of 100,000 requests of the BurstGPT file; give it by --burstgpt"),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
        (("--collect-only",), "to collect without running needs the store"),
    ],
)
def test_one_sentence(reproduction, here, words, said):
    code, shown, heard = reproduction(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []
