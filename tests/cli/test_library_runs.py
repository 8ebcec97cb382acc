"""`lbopt library` and whole runs: list, show, search; Ctrl-C, and what it says of wrong words."""

import json
import re

import pytest

from lbopt.instances import library

NAMES = library.run_names()


def test_list_shows_every_run(type_in):
    """With their rule and ratio, beside the entries and alone."""
    code, shown, _ = type_in("library", "list", "--class", "run")
    assert code == 0
    for name in NAMES:
        assert re.search(rf"^{name} .* {library.load_run(name).ratio:.3f} *$", shown, re.MULTILINE)
    everything = type_in("library", "list")[1]
    assert all(name in everything for name in [*NAMES, *library.names()])
    assert not set(NAMES) & set(type_in("library", "list", "--class", "tiny")[1].split())


def test_list_as_json_and_by_workers(type_in):
    code, shown, _ = type_in("library", "list", "--class", "run", "--workers", 3, "--json")
    facts = json.loads(shown)
    assert code == 0
    assert [one["name"] for one in facts] == [n for n in NAMES if library.load_run(n).workers == 3]
    for one in facts:
        run = library.load_run(one["name"])
        assert (one["reached"], one["least"], one["command"]) == (run.reached, run.least, run.command)


def test_show_says_what_the_run_is(type_in):
    """Rule, both costs, requests, and the command that finds it again; as JSON the line of the file."""
    run = library.load_run(NAMES[0])
    code, shown, _ = type_in("library", "show", run.name)
    assert code == 0
    for part in (run.rule, f"{run.reached:,}", f"{run.least:,}", ", ".join(map(str, run.output)), run.command):
        assert part in " ".join(shown.split())
    assert library.StoredRun.from_dict(json.loads(type_in("library", "show", run.name, "--json")[1])) == run


@pytest.mark.jit
def test_search_shows_ratios_and_writes_them(type_in, tmp_path):
    """One table a measure, the best worst case named; the file has what the table has."""
    file = tmp_path / "worst.json"
    words = ["--policy", "jsq", "--policy", "fcfs", "--fleets", "2x2,2x1", "--measure", "placing", "--trials", 5]
    code, shown, _ = type_in("library", "search", *words, "--seed", 1, "--out", file)
    rows = json.loads(file.read_text())
    assert code == 0
    assert {(row["rule"], row["slots"]) for row in rows} == {("jsq", 1), ("jsq", 2), ("fcfs", 1), ("fcfs", 2)}
    assert "the least worst case has" in " ".join(shown.split())
    for row in rows:
        assert f"{row['reached'] / row['least']:.3f}" in shown
    assert all(row["reached"] == row["least"] for row in rows if row["slots"] == 1)  # one slot: nothing to place


def test_ctrl_c_keeps_what_was_found(type_in, tmp_path, monkeypatch):
    """Exit code 130, a table of the searches that ended, and a file of them."""
    from lbopt.studies.library import runs

    stored = library.load_run(NAMES[0])
    calls = []

    def interrupted(line, hints):
        calls.append(line)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return stored

    monkeypatch.setattr(runs.Searched, "found", interrupted)
    file = tmp_path / "worst.json"
    code, shown, said = type_in("library", "search", "--policy", "jsq", "--fleets", "2x1,2x2,2x3", "--out", file)
    assert code == 130
    assert "1 of 9 searches ended: interrupted" in " ".join(said.split())
    assert f"{stored.ratio:.3f}" in shown
    assert json.loads(file.read_text()) == [stored.to_dict()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("search", "--fleets", "2by2"), "the fleet is '2by2'; expected workers x slots, such as 2x3"),
        (("search", "--fleets", "9x2", "--policy", "jsq", "--trials", 1), "expected 1 to 4 workers"),
        (("search", "--measure", "meters"), "the measure is 'meters'; expected one of placing"),
        (("search", "--policy", "jsk"), "jsq"),
        (("search", "--trials", 0), "trials is 0"),
        (("search", "--minutes", -1), "minutes is -1.0"),
        (("solve", NAMES[0]), "is a whole run and no step problem"),
        (("export", NAMES[0]), f"`lbopt library show {NAMES[0]}` shows it"),
        (("show", "run-jsk-g2-b2-barriers"), "run-jsq-g2-b2-barriers"),
        (("list", "--class", "runs"), "did you mean 'run'"),
    ],
)
def test_wrong_words_are_one_sentence(type_in, words, message):
    code, _, said = type_in("library", *words)
    assert code == 2
    assert said.startswith("error: ")
    assert message in " ".join(said.split())


def test_the_example_of_search_works(type_in):
    from lbopt.cli.library import app

    (text,) = (c.callback.__doc__ for c in app.registered_commands if c.name == "search")
    line = " ".join(re.search(r"Example: `lbopt (.*?)`", text, flags=re.DOTALL).group(1).split())
    assert type_in(*line.split())[0] == 0
