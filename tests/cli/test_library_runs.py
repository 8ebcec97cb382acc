"""`lbopt show problems` and whole runs: list, show, and what it says of wrong words."""

import json
import re

import pytest

from lbopt.instances import library

NAMES = library.run_names()


def test_list_shows_every_run(type_in):
    """With their rule and ratio, beside the entries and alone."""
    code, shown, _ = type_in("show", "problems", "--class", "run")
    assert code == 0
    for name in NAMES:
        assert re.search(rf"^{name} .* {library.load_run(name).ratio:.3f} *$", shown, re.MULTILINE)
    everything = type_in("show", "problems")[1]
    assert all(name in everything for name in [*NAMES, *library.names()])
    assert not set(NAMES) & set(type_in("show", "problems", "--class", "tiny")[1].split())


def test_list_as_json_and_by_workers(type_in):
    code, shown, _ = type_in("show", "problems", "--class", "run", "--workers", 3, "--json")
    facts = json.loads(shown)
    assert code == 0
    assert [one["name"] for one in facts] == [n for n in NAMES if library.load_run(n).workers == 3]
    for one in facts:
        run = library.load_run(one["name"])
        assert (one["reached"], one["least"], one["command"]) == (run.reached, run.least, run.command)


def test_show_says_what_the_run_is(type_in):
    """Rule, both costs, requests, and the command that finds it again; as JSON the line of the file."""
    run = library.load_run(NAMES[0])
    code, shown, _ = type_in("show", "problems", run.name)
    assert code == 0
    for part in (run.rule, f"{run.reached:,}", f"{run.least:,}", ", ".join(map(str, run.output)), run.command):
        assert part in " ".join(shown.split())
    assert library.StoredRun.from_dict(json.loads(type_in("show", "problems", run.name, "--json")[1])) == run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", NAMES[0]), "is a whole run and no step problem"),
        (("export", NAMES[0]), f"`lbopt show problems {NAMES[0]}` shows it"),
        (("show", "problems", "run-jsk-g2-b2-barriers"), "run-jsq-g2-b2-barriers"),
        (("show", "problems", "--class", "runs"), "did you mean 'run'"),
    ],
)
def test_wrong_words_are_one_sentence(type_in, words, message):
    code, _, said = type_in(*words)
    assert code == 2
    assert said.startswith("error: ")
    assert message in " ".join(said.split())
