"""The command of the race: tables, results.csv, going on, contradictions and wrong input."""

import csv

import pytest

from lbopt.runner import Serial
from tests.benchmarks.race import race
from tests.benchmarks.race.__main__ import main
from tests.benchmarks.race.small_race import problem


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Three problem files whose runs answer at once, in this process; rivals claim, half a second later."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(race, "MEASURE", "tests.benchmarks.race.small_race:scripted")
    monkeypatch.setattr(race, "Isolated", lambda *given, **named: Serial())
    monkeypatch.setattr(race, "_compile", lambda *given: None)
    for name, first in (("a", 10), ("b", 11), ("c", 12)):
        (tmp_path / f"{name}.json").write_text(problem(first=first).to_json())
    return "a.json,b.json,c.json"


def raced(instances, *more):
    return main(["--solvers", "exact,highs", "-i", instances, "--limit", "1", "-o", "out", *more])


def test_tables_and_rows(problems, tmp_path, capsys):
    """Who was how quick, a row for each instance and solver; the second call runs nothing and writes the same."""
    assert raced(problems) == 0
    assert "500×" in capsys.readouterr().out
    text = (tmp_path / "out" / "results.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["instance"], row["solver"]) for row in rows] == [(i, s) for i in "abc" for s in ("exact", "highs")]
    assert [row["status"] for row in rows] == ["proved", "claimed"] * 3
    assert {row["censored"] for row in rows} == {"0"}
    assert raced(problems) == 0
    assert (tmp_path / "out" / "results.csv").read_text() == text


def test_a_contradiction_is_loud(problems, capsys):
    """Exit code 1, and the two that cannot both be right."""
    assert raced("a.json", "--seed", "1") == 1
    said = capsys.readouterr().out
    assert "CONTRADICTION: a: highs claimed that nothing is below 10 tokens, but exact has a placement of 9" in said


@pytest.mark.parametrize(
    ("instances", "more", "message"),
    [
        ("", (), "the race has no instance"),
        ("a.json", ("--solvers", "exact,hihgs"), "did you mean 'highs'"),
        ("nothing.json", (), "cannot read nothing.json"),
        ("a.json", ("--limit", "0"), "time_limit is 0"),
        ("a.json", ("--reference", "cp-sat"), "takes no part"),
    ],
)
def test_wrong_input(problems, tmp_path, capsys, instances, more, message):
    """Exit code 2, one sentence, and nothing is written."""
    assert raced(instances, *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
