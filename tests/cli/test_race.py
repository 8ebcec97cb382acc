"""`lbopt race` as a terminal sees it: the folder, going on, contradictions, and Ctrl-C in a real process."""

import csv
import json
import random
import signal
import subprocess
import sys
import time

import pytest
from cli.terminal import environment, lbopt
from studies.race.small_race import DIES, problem

from lbopt.runner import Isolated, Serial, Store
from lbopt.studies.race import race

SCRIPTED = "studies.race.small_race:scripted"
FILES = {
    *("race.sqlite", "results.csv", "summary.json", "report.html", "run.json"),
    *("profile.png", "profile.svg", "ratios.png", "ratios.svg"),
}


@pytest.fixture
def scripted(monkeypatch):
    """Runs answer at once, in this process; rivals claim, half a second later."""
    monkeypatch.setattr(race, "MEASURE", SCRIPTED)
    monkeypatch.setattr(race, "Isolated", lambda *given, **named: Serial())
    monkeypatch.setattr(race, "_compile", lambda *given: None)


@pytest.fixture
def problems(here):
    """Three problem files, and the option that names them."""
    for name, first in (("a", 10), ("b", 11), ("c", 12)):
        (here / f"{name}.json").write_text(problem(first=first).to_json())
    return "a.json,b.json,c.json"


def results(folder):
    with (folder / "results.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_the_folder(type_in, here, problems, scripted):
    """Every file is there, the tables say who was how quick, and the page needs nothing else."""
    code, shown, said = type_in("race", "--solvers", "exact,highs", "-i", problems, "--limit", 1, "-o", "out")
    assert code == 0, said
    assert {path.name for path in (here / "out").iterdir()} == FILES
    rows = results(here / "out")
    assert [(row["instance"], row["solver"]) for row in rows] == [(i, s) for i in "abc" for s in ("exact", "highs")]
    assert {row["status"] for row in rows if row["solver"] == "exact"} == {"proved"}
    assert {row["censored"] for row in rows} == {"0"}
    summary = json.loads((here / "out" / "summary.json").read_text())
    (ratio,) = summary["ratios"]
    assert (ratio["solver"], ratio["pairs"], ratio["median_ratio"]) == ("highs", 3, [500.0, 500.0])
    assert "exact has 100% proved. highs has 0% proved and claims 100% more." in shown
    assert "500×" in shown
    page = (here / "out" / "report.html").read_text()
    assert page.count("<figure role") == page.count("<svg") == 2
    assert "http" not in page
    account = json.loads((here / "out" / "run.json").read_text())
    assert account["finished"]
    assert FILES - {"run.json"} <= set(account["files"])


def test_the_same_folder_goes_on(type_in, here, problems, scripted):
    """What is stored is kept, more instances are more runs, and the tables show what this command asks for."""
    first = ("race", "--solvers", "exact,highs", "-i", "a.json", "--limit", 1, "-o", "out")
    assert type_in(*first)[0] == 0
    with Store(here / "out" / "race.sqlite", read_only=True) as store:
        before = {row.task.key: row.finished for row in store.rows()}
    assert type_in("race", "--solvers", "exact,highs", "-i", problems, "--limit", 1, "-o", "out")[0] == 0
    with Store(here / "out" / "race.sqlite", read_only=True) as store:
        after = {row.task.key: row.finished for row in store.rows()}
    assert len(before) == 2
    assert len(after) == 6
    assert before.items() <= after.items()
    assert type_in(*first)[0] == 0
    assert len(results(here / "out")) == 2


def test_equal_data_give_equal_files(type_in, here, problems, scripted):
    """The second run computes nothing and writes the same bytes."""
    words = ("race", "--solvers", "exact,highs", "-i", problems, "--limit", 1, "-o", "out")
    type_in(*words)
    before = {name: (here / "out" / name).read_bytes() for name in FILES - {"race.sqlite"}}
    type_in(*words)
    assert {name: (here / "out" / name).read_bytes() for name in before} == before


def test_a_contradiction_is_loud(type_in, here, problems, scripted):
    """Exit code 1, the two that cannot both be right, and an alarm on the page."""
    words = ("race", "--solvers", "exact,highs", "-i", "a.json", "--limit", 1, "--seed", 1, "-o", "out")
    code, _, said = type_in(*words)
    assert code == 1
    assert "CONTRADICTION: a: highs claimed that nothing is below 10 tokens, but exact has a placement of 9" in said
    assert "one of the bounds is false" in (here / "out" / "report.html").read_text()
    (told,) = json.loads((here / "out" / "summary.json").read_text())["contradictions"]
    assert (told["solver"], told["bound"], told["refuted_by"], told["value"]) == ("highs", 10, "exact", 9)


def test_a_run_that_dies_is_shown(type_in, here, scripted, monkeypatch):
    """It is counted as failed, with its reason in the tables and files; the exit code speaks of contradictions."""
    monkeypatch.setattr(race, "Isolated", Isolated)
    (here / "dead.json").write_text(problem(workers=DIES).to_json())
    (here / "good.json").write_text(problem().to_json())
    code, shown, _ = type_in("race", "--solvers", "exact", "-i", "dead.json,good.json", "--limit", 1, "-o", "out")
    assert code == 0
    assert "Runs that failed" in shown
    assert {row["instance"]: row["status"] for row in results(here / "out")} == {"dead": "failed", "good": "proved"}


def test_ctrl_c_between_two_runs(type_in, here, problems, scripted, monkeypatch):
    """130, what was done is kept and shown, and the same command goes on."""
    real = race._Advance

    class Pressed(real):
        def __call__(self, summary, outcome):
            super().__call__(summary, outcome)
            if outcome is not None and summary.remaining == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(race, "_Advance", Pressed)
    words = ("race", "--solvers", "exact,highs", "-i", problems, "--limit", 1, "-o", "out")
    code, _, said = type_in(*words)
    assert code == 130
    assert "interrupted: what was done is kept; go on with: lbopt race --solvers exact,highs" in said
    assert [row["status"] for row in results(here / "out")].count("missing") == 4
    assert "Interrupted." in (here / "out" / "report.html").read_text()
    monkeypatch.setattr(race, "_Advance", real)
    assert type_in(*words)[0] == 0
    assert "missing" not in {row["status"] for row in results(here / "out")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "out"), "the race has no instance"),
        (("-i", "a.json", "--solvers", "exact,hihgs"), "did you mean 'highs'"),
        (("-i", "nothing.json"), "cannot read nothing.json"),
        (("-i", "a.json", "--limit", "0"), "time_limit is 0"),
        (("-i", "a.json", "-o", "taken"), "holds 'mine.txt', which no earlier run of this kind wrote"),
        (("-i", "a.json", "-o", "no/where"), "does not exist"),
        (("-i", "a.json", "--reference", "cp-sat", "--solvers", "exact"), "takes no part"),
    ],
)
def test_wrong_input(type_in, here, problems, words, message):
    """Exit code 2, one sentence, and nothing is written."""
    (here / "taken").mkdir()
    (here / "taken" / "mine.txt").write_text("mine")
    before = sorted(here.rglob("*"))
    code, _, said = type_in("race", *words)
    assert code == 2
    assert message in said
    assert said.count("\n") <= 2
    assert sorted(here.rglob("*")) == before


@pytest.mark.jit
def test_for_real(tmp_path):
    """Own search and HiGHS on a small problem, in real processes."""
    (tmp_path / "a.json").write_text(problem().to_json())
    words = ("--solvers", "exact,highs", "-i", "a.json", "--limit", 5, "-o", "out")
    done = lbopt("race", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = results(tmp_path / "out")
    assert [row["value"] for row in rows] == ["10"] * 2
    assert [row["status"] for row in rows] == ["proved", "claimed"]


def test_ctrl_c_while_a_solver_works(tmp_path):
    """A solver at a problem that takes a minute: 130 within seconds, and the finished run is kept."""
    draw = random.Random(1)
    hard = {"base": [0] * 9, "slots": [8] * 9, "work": [draw.randrange(2**16) for _ in range(90)]}
    hard |= {"format": "lbopt-step-problem", "version": 1}
    (tmp_path / "a.json").write_text(problem().to_json())
    (tmp_path / "z.json").write_text(json.dumps(hard))
    words = ("race", "--solvers", "cp-sat", "-i", "a.json,z.json", "--limit", "60", "-o", "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "lbopt", *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        limit = time.monotonic() + 60
        while _stored(tmp_path / "out" / "race.sqlite") < 1:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert [row["status"] for row in results(tmp_path / "out")] == ["claimed", "missing"]


def _stored(path):
    if not path.exists() or path.stat().st_size == 0:
        return 0
    try:
        with Store(path, read_only=True) as store:
            return len(store)
    except Exception:  # it is being made
        return 0
