"""Every wrong problem or result gets one sentence and exit code 2."""

import json

import pytest
from cli.bad_input import PROBLEM, TINY
from cli.bad_input import files as files
from cli.bad_input import refused as refused


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"slots": [1, 1]}, "slots has 2 entries"),
        ({"base": [[1, 2], [3, 4], [5, 6]], "work": [[1, 2, 3]]}, "both need H + 1 columns"),
        ({"base": [[1], [2, 3], [4]]}, "rectangular"),
        ({"base": 5}, "base must be"),
        ({"base": "abc"}, "base must be"),
        ({"base": {"a": 1}}, "base must be"),
        ({"work": [1, "x"]}, "whole numbers"),
        ({"work": [1, None]}, "work[1] is None"),
        ({"work": None}, "work"),
        ({"base": [-1, 3, 5]}, "base[0] is -1"),
        ({"slots": [1, -2, 0]}, "slots[1] is -2"),
        ({"work": [4, 1.5, 2]}, "work[1] is 1.5"),
        ({"base": [float("nan"), 1, 2]}, "NaN is no number"),
        ({"base": [float("inf"), 1, 2]}, "Infinity is no number"),
        ({"base": [], "slots": []}, "at least one worker"),
        ({"base": [2**61, 1, 1]}, "beyond 2**62"),
        ({"base": [2**80, 1, 1]}, "2**62"),
        ({"must_admit": [1, 1, 1, 1]}, "must_admit names 4 requests"),
        ({"must_admit": [1]}, "must_admit must have shape"),
        ({"must_admit": [1, 2, 0, 0]}, "must_admit[1] is 2; expected true, false, 0 or 1"),
        ({"digest": "0" * 64}, "it was changed"),
        ({"format": "other"}, "not a step problem"),
        ({"version": 7}, "version 7"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_problems_that_cannot_be(refused, here, change, expected):
    """Each wrong problem is named with the entry at fault."""
    (here / "bad.json").write_text(json.dumps(PROBLEM | change))
    refused(expected, "solve", "bad.json")


def test_an_unknown_solver_is_told_all_that_this_verb_takes(refused, here):
    (here / "good.json").write_text(json.dumps(PROBLEM))
    refused("(did you mean 'all'?); expected one of exact, search, auto", "solve", "good.json", "--solver", "al")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not valid JSON"),
        (json.dumps(PROBLEM)[:50], "not valid JSON"),
        ("[1, 2]", "not a step problem"),
        ("3", "not a step problem"),
        ('{"format": "lbopt-step-problem", "version": 1}', "lacks base, slots, work"),
        (b"\xff\xfe", "UTF-16 text"),
        (
            '{"format": "lbopt-step-problem", "version": 1, "base": [' + "9" * 5000 + '], "slots": [1], "work": []}',
            "bad",
        ),
        ("[" * 100_000, "bad.json"),
    ],
    ids=["empty", "truncated", "list", "number", "lacking", "bytes", "giant number", "deep"],
)
@pytest.mark.parametrize("verb", ["solve", "verify"])
def test_problem_files_that_cannot_be_read(refused, here, verb, text, expected):
    """Each file that is no problem is named with the reason."""
    (here / "bad.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(expected, verb, "bad.json", *(["p.json"] if verb == "verify" else []))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not valid JSON"),
        ('{"format": "lbopt-res', "not valid JSON"),
        ("[]", "is not a result"),
        (json.dumps(PROBLEM), "is not a result"),
        ('{"format": "lbopt-result", "version": 9}', "version 9"),
        ('{"format": "lbopt-result", "version": 1}', "lacks assignment"),
        (b"\xff", "not UTF-8 text"),
    ],
    ids=["empty", "truncated", "list", "a problem", "version", "lacking", "bytes"],
)
def test_results_that_cannot_be_read(refused, here, text, expected):
    """A file that is no result is wrong input, not a rejected claim."""
    (here / "r.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(expected, "verify", "p.json", "r.json")


@pytest.mark.parametrize(
    "words",
    [("solve", "absent.json"), ("verify", "absent.json", "p.json"), ("verify", "p.json", "absent.json")],
    ids=str,
)
def test_files_that_are_not_there(refused, words):
    """A missing file is named."""
    refused("absent.json", *words)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--solver", "gurobi"), "solver is 'gurobi'"),
        (("--time-limit", "0"), "time_limit is 0"),
        (("--time-limit", "-3"), "time_limit is -3"),
        (("--time-limit", "nan"), "time_limit is nan"),
        (("--time-limit", "soon"), "--time-limit"),
        (("--tie", "random"), "tie is 'random'"),
        (("--seed", "-1"), "seed is -1"),
        (("--line", "0"), "no line 0"),
        (("--line", "2"), "no line 2"),
        (("--write", "a.txt"), "expected .lp or .mps"),
        (("--write", "nowhere/a.lp"), "nowhere"),
        (("--out", "nowhere/r.json"), "nowhere"),
        (("--out", "foreign"), "foreign"),
        (("--out", "."), "."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_solve_options_that_cannot_be(refused, options, expected):
    """Each wrong option of solve is named; a result that cannot be written leaves nothing half-written."""
    refused(expected, "solve", "p.json", *options)


def test_an_absent_solver_says_how_to_get_it(refused, monkeypatch):
    """A backend whose package is not installed names the command that brings it."""
    from lbopt.solvers import registry

    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    refused("pip install", "solve", "p.json", "--solver", "cp-sat")
    refused('pip install "lbopt[highs]"', "gap", *TINY, "--states", 1, "--solver", "highs", "-o", "out")
