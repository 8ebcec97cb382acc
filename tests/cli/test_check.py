"""`lbopt check` as a terminal sees it."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import signal
import subprocess
import sys
import time

import pytest
from cli.terminal import environment

from lbopt.theory.finding import Verdict
from lbopt.theory.ledger import CLAIMS

#: Claims that end at once; the last two have counterexamples.
HANDFUL = ("lemma-8", "berry-esseen-rate:rounds=yes", "fcfs-exact:G=4,p=0.3", "lemma-2-printed", "lemma-1-printed")


@pytest.fixture
def check(type_in):
    return lambda *words: type_in("check", *words)


def unless_timed(path):
    """A file's text without what two runs of the same command may differ in."""
    text = path.read_text(encoding="utf-8")
    if path.name == "run.json":
        run = json.loads(text)
        for name in ("seconds", "command"):
            del run[name]
        return run
    text = re.sub(r"Made by `[^`]*` in \d+ s", "", text)
    return re.sub(r"<pre>.*?</pre>", "", text, flags=re.S)


def test_list(type_in):
    code, shown, said = type_in("show", "claims")
    assert (code, said) == (0, "")
    words = shown.split()
    assert all(name in words for name in CLAIMS)
    assert "lbopt check NAME:parameter=value" in shown


@pytest.mark.jit
def test_one_claim(check, here):
    code, shown, _ = check("lemma-8")
    assert code == 0
    assert "lemma-8: A slot spreads at least as its prompt does" in shown
    assert "1 claim: 1 holds. All verdicts are the expected ones." in shown
    assert list(here.iterdir()) == []


@pytest.mark.jit
def test_a_regime_of_ones_own(check, here):
    code, shown, _ = check("fcfs-exact:G=4,p=0.3", "--seed", 1, "-o", "out")
    assert code == 0
    assert "G=4, B=64, p=0.3, s<=8" in shown
    assert "lbopt check fcfs-exact:G=4,p=0.3" in (here / "out" / "theory.md").read_text()
    run = json.loads((here / "out" / "run.json").read_text())
    regimes = [{"claim": "fcfs-exact", "regimes": [{"G": 4, "p": 0.3}]}]
    assert run["configuration"] == {"level": "quick", "seed": 1, "claims": regimes}
    assert run["command"] == "lbopt check fcfs-exact:G=4,p=0.3 --seed 1 -o out"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no claim was named; `lbopt show claims` shows them, and `all` takes them all"),
        (("theorem-9",), "unknown claim 'theorem-9': did you mean theorem-3 or theorem-2 or theorem-1? `lbopt"),
        (("frobnicate",), "unknown claim 'frobnicate': `lbopt show claims` shows all"),
        (("lemma-8", "--workers", "0"), "workers is 0; expected at least 1"),
        (
            ("lemma-8", "--workers", "2", "--engine", "dask"),
            "workers and --engine both say where tasks run; give one of them",
        ),
        (("all", "lemma-8"), "all claims were asked for, and 'lemma-8' by name; give one or the other"),
        (("fcfs-exact:q=3",), "claim 'fcfs-exact' has no option 'q'; it takes G, B, p, s_max, accuracy, growth"),
        (("fcfs-exact:G=many",), "claim 'fcfs-exact': G is 'many'; expected a number"),
        (("fcfs-exact:p=1.5",), "fcfs-exact assumes outputs of law Geo(p) with 0 < p < 1; p is 1.5"),
        (("fcfs-exact:p=nan",), "claim 'fcfs-exact': p is 'nan'; expected a finite number"),
        (("fcfs-exact:p=1e-12",), "the law of a slot spreads over"),
        (("fcfs-drift:growth=quick",), "growth is 'quick'; expected tokens a step such as 1, 1/2, or a cycle 0+1+3"),
        (("lemma-8:p=-inf",), "claim 'lemma-8': p is '-inf'; expected a finite number"),
        (("lemma-8", "--seed", "-1"), ""),
        (("lemma-8", "--engine", "daks"), "unknown engine 'daks': did you mean dask?"),
        (("lemma-8", "--collect-only"), "to collect without running needs the store that holds the results"),
        (("lemma-8", "--collect-only", "--store", "none.sqlite"), "there is no store at"),
        (("lemma-8", "-o", "missing/out"), "output folder 'missing/out' cannot be made"),
    ],
)
def test_one_sentence(check, here, words, said):
    code, shown, heard = check(*words)
    assert (code, shown) == (2, "")
    sentence = [line for line in heard.splitlines() if line.startswith("error: ")]
    assert said in "".join(sentence or [heard])
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_a_folder_that_is_not_ours_is_left_alone(check, here):
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years")
    code, shown, heard = check("lemma-8", "-o", "mine")
    assert (code, shown) == (2, "")
    assert "'mine' holds 'thesis.txt', which no earlier run of this kind wrote" in heard
    assert [path.name for path in (here / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.jit
def test_a_folder_of_ours_is_replaced(check, here):
    assert check("lemma-1-printed", "-o", "out")[0] == 0
    assert list((here / "out").glob("counterexample-*"))
    assert check("lemma-8", "-o", "out")[0] == 0
    assert {path.name for path in (here / "out").iterdir()} == {"findings.csv", "report.html", "run.json", "theory.md"}


@pytest.mark.jit
def test_a_handful_with_a_folder_on_two_engines(check, here):
    """The same bytes apart from timings, and everything a reader is promised."""
    assert check(*HANDFUL, "--seed", 3, "-o", "one")[0] == 0
    code, shown, _ = check(*HANDFUL, "--seed", 3, "-o", "two", "--engine", "joblib:jobs=2")
    assert code == 0
    assert "5 claims: 2 refuted, 3 holds. All verdicts are the expected ones." in shown
    one, two = ({path.name: unless_timed(path) for path in (here / name).iterdir()} for name in ("one", "two"))
    assert one == two
    page = (here / "one" / "report.html").read_text()
    assert "≤" in page or "≥" in page
    assert "$" not in re.sub(r"<pre>.*?</pre>", "", page, flags=re.S)
    with (here / "one" / "findings.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(dict.fromkeys(row["claim"] for row in rows)) == [name.partition(":")[0] for name in HANDFUL]


@pytest.mark.jit
def test_counterexamples_are_what_they_say(check, type_in, here):
    """Each opens with `lbopt solve`, and its optimum is the one that is claimed."""
    assert check("lemma-1-printed", "lemma-2-printed", "-o", "out")[0] == 0
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["counterexamples"]
    for name, about in run["counterexamples"].items():
        code, _, heard = type_in("solve", here / "out" / name, "--out", here / "solved.json")
        assert code == 0, heard
        claimed = int(re.search(r"least imbalance (\d+)", about["says"]).group(1))
        assert json.loads((here / "solved.json").read_text())["objective"] == claimed, name


@pytest.mark.jit
def test_a_store_resumes_and_collects(check, here, monkeypatch):
    words = ("lemma-8", "berry-esseen-rate:rounds=yes", "--store", "s.sqlite")
    first = check(*words)
    monkeypatch.setattr("lbopt.studies.check.measured.measured", None)  # whoever computes again fails
    assert check(*words)[:2] == first[:2]
    assert check(*words, "--collect-only")[:2] == first[:2]
    code, shown, heard = check("lemma-8", "slot-law", "--store", "s.sqlite", "--collect-only", "-o", "part")
    assert code == 1
    assert "2 of 10 results are not in s.sqlite" in heard
    assert "nothing was measured" in shown
    assert "undecided" in shown
    assert "are not in s.sqlite" in (here / "part" / "theory.md").read_text()


@pytest.mark.jit
def test_another_verdict_than_the_ledgers_is_exit_code_1(check, monkeypatch):
    changed = dataclasses.replace(CLAIMS["lemma-8"], expected=Verdict.REFUTED)
    monkeypatch.setitem(CLAIMS, "lemma-8", changed)
    code, shown, heard = check("lemma-8")
    assert code == 1
    assert "lemma-8: holds, where the ledger has 'refuted'." in shown
    assert "Traceback" not in heard


@pytest.mark.jit
def test_ctrl_c_keeps_what_has_ended(check, here, monkeypatch):
    """Ctrl-C in the third regime: 130, a report of two marked as interrupted, and a store that goes on."""
    claim, calls = CLAIMS["lemma-8"], []

    def pressed(*, p: float = 0.2, s_max: int = 8, pool: str = "all", growth: str = "1", steps: int = 40, seed: int):
        calls.append(growth)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return claim.measure(p=p, s_max=s_max, pool=pool, growth=growth, steps=steps, seed=seed)

    monkeypatch.setitem(CLAIMS, "lemma-8", dataclasses.replace(claim, measure=pressed))
    code, shown, heard = check("lemma-8", "--store", "s.sqlite", "-o", "out")
    assert code == 130
    assert "undecided" in shown
    assert "interrupted: 2 of 8 tasks have ended; s.sqlite keeps them" in heard
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True
    assert "Interrupted." in (here / "out" / "report.html").read_text()
    assert check("lemma-8", "--store", "s.sqlite", "-o", "out")[0] == 0
    assert len(calls) == 9  # the third again, and the other five
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is False


# lbopt as it is, in which the third regime of lemma-8 leaves a file and lingers.
WATCHED = """
import sys, time
from pathlib import Path
from lbopt.theory.claims import moments
law, calls = moments.slot_law_at, []
def watched(*given):
    calls.append(given)
    if len(calls) == 2 * 41 + 5:
        Path("there").touch()
        time.sleep(60)
    return law(*given)
moments.slot_law_at = watched
from lbopt.__main__ import main
main()
"""


@pytest.mark.more
def test_ctrl_c_in_a_real_process(here):
    """130 within seconds, no traceback, a folder marked as interrupted, and nothing half-written."""
    (here / "watched.py").write_text(WATCHED)
    process = subprocess.Popen(
        [sys.executable, "watched.py", "check", "lemma-8", "--store", "s.sqlite", "-o", "out"],
        cwd=here,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        limit = time.monotonic() + 400
        while not (here / "there").exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted: 2 of 8 tasks have ended; s.sqlite keeps them, and the same command goes on" in said
    assert "undecided" in shown
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True
    assert not [path.name for path in here.iterdir() if "partial" in path.name]
