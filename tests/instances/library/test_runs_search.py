"""Whole runs of the library: each is played and solved again, and the search behind them goes on where it stopped."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances import library
from lbopt.instances.library.collection import MEASURES, StoredRun, read_runs
from lbopt.policies import POLICIES, make_policy
from tools.library.runs import search as runs
from tools.library.runs.__main__ import main
from tools.library.runs.search import LEFT_OUT, RULES, Searched, recomputed, search, searches, small_run

pytestmark = pytest.mark.more

NAMES = library.run_names()


def test_every_rule_is_searched_for_or_left_out_with_a_reason():
    searched = {rule.partition(":")[0] for rule in RULES}
    assert searched | set(LEFT_OUT) == set(POLICIES)
    assert not searched & set(LEFT_OUT)
    assert len({make_policy(rule).name for rule in RULES}) == len(RULES)


def test_the_library_has_runs_of_every_rule_and_measure():
    stored = [library.load_run(name) for name in NAMES]
    assert {run.rule for run in stored} == set(RULES)
    assert {run.measure for run in stored} == set(MEASURES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.some(9)
@pytest.mark.jit
@pytest.mark.parametrize("rule", RULES)
def test_what_is_stored_is_true(rule):
    """The simulator pays what is said; the optimum is found again; placing alone never loses more than min(B, G)."""
    stored = [run for run in map(library.load_run, NAMES) if run.rule == rule]
    assert stored
    for run in stored:
        bad = recomputed(run)
        assert (bad.reached, bad.least) == (run.reached, run.least), run.name
        assert 1 <= bad.ratio <= (min(run.slots, run.workers) if run.measure == "placing" else run.workers + 1)
        if run.measure != "seconds":
            assert bad.ratio <= run.workers
            assert bad.least >= -(-small_run(run).work // run.workers)


@pytest.mark.jit
@pytest.mark.parametrize("measure", MEASURES)
def test_a_search_is_repeatable_and_finds_something(measure):
    line = Searched("jsq", measure, 2, 2, 1, 60)
    found = line.found([])
    assert found == line.found([])
    assert found.ratio > 1
    assert line.is_of(found)
    assert (found.fixed > 0) == (measure == "seconds")
    # Nothing smaller is as bad: without any one request the ratio falls.
    bad = recomputed(found)
    for i in range(len(found.prompt)):
        rest = [tuple(np.delete(lengths, i).tolist()) for lengths in (found.prompt, found.output)]
        less = runs.judge("jsq", measure, runs.SmallRun(2, 2, *rest)) if rest[0] else None
        assert less is None or less.ratio < bad.ratio


@pytest.mark.jit
def test_what_one_rule_is_bad_at_is_tried_on_the_next():
    """With one trial a search finds what its hints have, or worse."""
    hint = Searched("jsq", "barriers", 3, 1, 1, 120).found([])
    alone, hinted = (Searched("round-robin", "barriers", 3, 1, 1, 1).found(hints) for hints in ([], [hint]))
    assert recomputed(replace(hint, rule="round-robin")).ratio <= recomputed(hinted).ratio
    assert alone.ratio < hinted.ratio


@pytest.mark.jit
def test_a_search_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """What the file has is not searched again, what it has beside it stays, and time that is up begins nothing."""
    file = tmp_path / "runs.json"
    lines = searches(["jsq"], ["placing"], [(2, 2), (2, 3)], 3, 20)
    first = search(lines[:1], file)
    assert read_runs(file.read_text(), "runs.json") == first
    marked, other = replace(first[0], reached=first[0].reached + 1), replace(first[0], rule="auto")
    file.write_text(json.dumps([marked.to_dict(), other.to_dict()]))
    heard = []
    both = search(lines, file, advance=heard.append)
    assert both == heard
    assert both[0] == marked
    assert read_runs(file.read_text(), "runs.json") == [*both, other]
    assert search(searches(["auto"], ["placing"], [(2, 2)], 3, 20), None, seconds=-1) == []
    monkeypatch.setattr(runs.Searched, "found", lambda line, hints: pytest.fail("searched again"))
    assert search(lines, file) == both


@pytest.mark.jit
def test_what_one_rule_is_bad_at_is_tried_on_those_before_it():
    """The first rule of a fleet has no hints; in the end it gets what was found for the second."""
    lines = searches(["lightllm", "jsq"], ["barriers"], [(3, 2)], 1, 25)
    alone = lines[0].found([])
    first, second = search(lines, None)
    assert first.ratio >= alone.ratio
    for run in (alone, second):
        assert recomputed(replace(run, rule="lightllm")).ratio <= recomputed(first).ratio
    assert (recomputed(first).reached, recomputed(first).least) == (first.reached, first.least)


def good():
    return {
        "rule": "jsq", "measure": "barriers", "workers": 2, "slots": 1, "prompt": [1, 2], "output": [3, 4], "fixed": 0,
        "reached": 9, "least": 8, "seed": 1, "trials": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"measure": "meters"}, "measure is 'meters'; expected one of placing, barriers, seconds"),
        ({"least": 10}, "reached is 9, least is 10"),
        ({"prompt": [1]}, "1 prompts and 2 outputs"),
        ({"prompt": [1, "2"]}, "prompt is .* expected a list, each entry a whole number"),
        ({"seed": "1"}, "seed is '1'; expected a whole number"),
    ],
)
def test_a_damaged_run_is_refused(changed, says):
    assert StoredRun.from_dict(good()).name == "run-jsq-g2-b1-barriers"
    with pytest.raises(InputError, match=says):
        StoredRun.from_dict({**good(), **changed})


def test_wrong_words_are_refused():
    with pytest.raises(InputError, match="no run 'run-jqs-g2-b2-barriers'"):
        library.load_run("run-jqs-g2-b2-barriers")
    with pytest.raises(InputError, match="the measure is 'meters'"):
        searches(["jsq"], ["meters"], [(2, 2)], 1, 1)
    with pytest.raises(InputError, match="nonsense"):
        searches(["nonsense"], ["barriers"], [(2, 2)], 1, 1)
    with pytest.raises(InputError, match="holds no list of runs"):
        read_runs("{}", "x.json")


@pytest.mark.jit
def test_search_shows_ratios_and_writes_them(capsys, tmp_path):
    """One table a measure, the best worst case named; the file has what the table has."""
    file = tmp_path / "worst.json"
    words = ["--policy", "jsq", "--policy", "fcfs", "--fleets", "2x2,2x1", "--measure", "placing", "--trials", "5"]
    code = main([*words, "--seed", "1", "--out", str(file)])
    shown = capsys.readouterr().out
    rows = json.loads(file.read_text())
    assert code == 0
    assert {(row["rule"], row["slots"]) for row in rows} == {("jsq", 1), ("jsq", 2), ("fcfs", 1), ("fcfs", 2)}
    assert "the least worst case has" in " ".join(shown.split())
    for row in rows:
        assert f"{row['reached'] / row['least']:.3f}" in shown
    assert all(row["reached"] == row["least"] for row in rows if row["slots"] == 1)  # one slot: nothing to place


def test_ctrl_c_keeps_what_was_found(capsys, tmp_path, monkeypatch):
    """Exit code 130, a table of the searches that ended, and a file of them."""
    stored = library.load_run(library.run_names()[0])
    calls = []

    def interrupted(line, hints):
        calls.append(line)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return stored

    monkeypatch.setattr(runs.Searched, "found", interrupted)
    file = tmp_path / "worst.json"
    assert main(["--policy", "jsq", "--fleets", "2x1,2x2,2x3", "--out", str(file)]) == 130
    shown = capsys.readouterr()
    assert "1 of 9 searches ended: interrupted" in " ".join(shown.err.split())
    assert f"{stored.ratio:.3f}" in shown.out
    assert json.loads(file.read_text()) == [stored.to_dict()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fleets", "2by2"), "the fleet is '2by2'; expected workers x slots, such as 2x3"),
        (("--fleets", "9x2", "--policy", "jsq", "--trials", "1"), "expected 1 to 4 workers"),
        (("--measure", "meters"), "the measure is 'meters'; expected one of placing"),
        (("--policy", "jsk"), "jsq"),
        (("--trials", "0"), "trials is 0"),
        (("--minutes", "-1"), "minutes is -1.0"),
    ],
)
def test_wrong_words_are_one_sentence(capsys, words, message):
    assert main(words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
