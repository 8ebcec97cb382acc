"""The upkeep of the library: what is known only gets better, contradictions are heard, Ctrl-C costs nothing."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from solvers.stated import stated

from lbopt import CertificateError, Result, StepProblem, solve
from lbopt.instances.library import Origin
from lbopt.instances.library.collection import Archive
from lbopt.solvers import elementary_bound
from lbopt.solvers.certificates import Certificate, check
from lbopt.studies.library import attempt, compared, result_text
from tools.library.__main__ import main
from tools.library.archive import Draft
from tools.library.building import build
from tools.library.in_time import certificate_within
from tools.library.knowledge import Known, joined, starting_point

#: The optimum is 1 (`GOOD`); `BAD` is worth 10. Closed-form reasoning proves 0.
PROBLEM = StepProblem.now(loads=[10, 0], slots=[1, 1], sizes=[1, 1, 12])
GOOD, BAD = [0, -1, 1], [0, 1, -1]


def answer(assignment, **changes):
    facts = {"bound": 0, "proof": None, "stop_reason": "time", "solver": "exact", "seconds": 0.0}
    return stated(PROBLEM, assignment, **(facts | changes))


def entry_of(known, problem=PROBLEM, name="an-entry"):
    draft = Draft(name=name, kind="tiny", explanation="", origin=Origin(recipe="", source=""), problem=problem)
    return draft.known(known.record)


@pytest.fixture
def little():
    """What is known where greedy has found `BAD` and nobody has proved anything."""
    record = starting_point(PROBLEM).record
    return Known(replace(record, best=10, assignment=np.array(BAD), bound=0))


def test_the_start_is_a_greedy_assignment_and_an_elementary_bound():
    """Nobody has to be asked for a value and a bound."""
    known = starting_point(PROBLEM)
    assert known.record.bound == elementary_bound(PROBLEM)
    assert known.record.best is not None
    assert known.certificate is None


def test_a_better_value_replaces_a_worse_one_and_never_the_other_way(little):
    """The assignment goes with its value, and its finder with both."""
    better = joined(little, PROBLEM, answer(GOOD, solver="cp-sat"))
    assert (better.record.best, better.record.assignment.tolist()) == (1, GOOD)
    assert "ortools" in better.record.best_by
    again = joined(better, PROBLEM, answer(BAD))
    assert again.record is better.record


def test_a_proof_brings_its_certificate(little):
    """The exact search proves the optimum; its certificate is checked and kept, and later claims change nothing."""
    proved = joined(little, PROBLEM, solve(PROBLEM, "search"))
    record = proved.record
    assert (record.status, record.proof, record.certificate) == ("proved", "certificate", "kept")
    assert check(PROBLEM, Certificate.from_dict(proved.certificate)) == 1
    later = joined(proved, PROBLEM, answer(GOOD, bound=1, proof="claimed:cp-sat", solver="cp-sat"))
    assert later.record is record
    assert later.certificate is proved.certificate


def test_a_certificate_that_is_too_large_is_left_out(little, monkeypatch):
    """Its digest stays."""
    monkeypatch.setattr("tools.library.knowledge.LARGEST_CERTIFICATE", 10)
    known = joined(little, PROBLEM, solve(PROBLEM, "search"))
    assert known.record.certificate == "left out"
    assert known.record.certificate_digest == solve(PROBLEM, "search").certificate().digest
    assert known.certificate is None


def test_a_proof_that_cannot_be_written_is_the_word_of_the_search(little):
    """The bound counts, and the record says why there is no certificate."""

    def refuse():
        raise CertificateError("it is too long")

    known = joined(little, PROBLEM, answer(GOOD, bound=1, proof="certificate", stop_reason="proved", evidence=refuse))
    assert (known.record.proof, known.record.certificate_note) == ("search", "it is too long")
    written = joined(known, PROBLEM, solve(PROBLEM, "search"))  # later somebody writes it
    assert (written.record.proof, written.record.certificate) == ("certificate", "kept")


def test_an_equal_bound_is_taken_over_where_its_proof_is_stronger(little):
    """From the word of the search to exhaustion, and never back."""

    def refuse():
        raise CertificateError("it is too long")

    word = joined(little, PROBLEM, answer(GOOD, bound=1, proof="certificate", evidence=refuse))
    assert not word.record.settled
    exhausted = joined(word, PROBLEM, answer(GOOD, bound=1, proof="exhaustion", solver="brute-force"))
    assert (exhausted.record.proof, exhausted.record.settled) == ("exhaustion", True)
    assert joined(exhausted, PROBLEM, answer(GOOD, bound=1, proof="exhaustion")).record is exhausted.record


def test_writing_a_proof_has_a_time_limit():
    """A writer that does not end is stopped; the time limit is in the sentence."""

    def forever():
        while True:
            pass

    slow = answer(GOOD, bound=1, proof="certificate", evidence=forever)
    with pytest.raises(CertificateError, match=r"longer than 0\.1 s"):
        certificate_within(PROBLEM, slow, 0.1)


def test_compiling_is_no_part_of_that_limit(monkeypatch):
    """The first proof ever written compiles what writes it."""
    compiled = [0.0]
    monkeypatch.setattr("lbopt.compile_time.seconds", lambda: compiled[0])

    def compiles_first():
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.4:
            compiled[0] = time.perf_counter() - begun
        return

    slow = answer(GOOD, bound=1, proof="certificate", evidence=compiles_first)
    assert certificate_within(PROBLEM, slow, 0.1) is None


def test_claims_stand_beside_proofs(little):
    """A claim is kept until a proof overtakes it or a value refutes it."""
    claimed = joined(little, PROBLEM, answer(BAD, bound=10, proof="claimed:cp-sat", solver="cp-sat"))
    assert (claimed.record.status, claimed.record.bound, claimed.record.claimed_bound) == ("claimed", 0, 10)
    refuted = joined(claimed, PROBLEM, answer(GOOD))
    assert (refuted.record.claimed_bound, refuted.record.claimed_by, refuted.record.status) == (None, None, "open")
    modest = joined(little, PROBLEM, answer(GOOD, bound=1, proof="claimed:cp-sat", solver="cp-sat"))
    assert modest.record.status == "claimed"
    assert joined(modest, PROBLEM, solve(PROBLEM, "search")).record.claimed_bound is None


@pytest.mark.parametrize("proof", ["certificate", "exhaustion"])
def test_contradictions_stop_it(little, proof):
    """A proof above a known value, and a value below a known proof, are errors that name both."""
    known = joined(little, PROBLEM, answer(GOOD))
    with pytest.raises(CertificateError, match=r"proved the bound 10 .* above the known assignment worth 1"):
        joined(known, PROBLEM, answer(BAD, bound=10, proof=proof))
    wrong = joined(little, PROBLEM, answer(BAD, bound=9, proof="exhaustion"))
    with pytest.raises(CertificateError, match="an assignment worth 1 was found, below the bound 9"):
        joined(wrong, PROBLEM, answer(GOOD))


def test_attempts_are_compared(little):
    """Matches, better, worse, contradiction; and the news."""
    entry = entry_of(little)
    assert compared(entry, answer(BAD)).verdict == "matches"
    better = compared(entry, answer(GOOD))
    assert (better.verdict, better.news) == ("better", "1 instead of 10")
    known = entry_of(joined(little, PROBLEM, answer(GOOD)))
    assert compared(known, answer(BAD)).verdict == "worse"
    assert compared(known, answer(BAD, bound=10, proof="exhaustion")).verdict == "contradiction"
    proved = attempt(known)
    assert (proved.verdict, proved.news) == ("matches", "proved optimal, open so far")
    text = result_text(proved)
    assert Result.from_json(text).certificate() is not None


def test_an_interrupt_that_the_solver_swallowed_is_heard(little, monkeypatch):
    """solve() returns what it knows after Ctrl-C; the race has to end."""
    monkeypatch.setattr("lbopt.studies.library.attempts.solve", lambda *a, **k: answer(GOOD, stop_reason="interrupted"))
    with pytest.raises(KeyboardInterrupt):
        attempt(entry_of(little))


# ---------------------------------------------------------------------- building


def draft(name, sizes=(1, 1, 12)):
    problem = StepProblem.now(loads=[10, 0], slots=[1, 1], sizes=sizes)
    return Draft(name=name, kind="tiny", explanation="", origin=Origin(recipe="", source=""), problem=problem)


@pytest.fixture
def three(monkeypatch):
    """A library of three entries, which tests may change."""
    recipes = {"tiny": {f"tiny-{letter}": partial(draft, f"tiny-{letter}") for letter in "abc"}}
    monkeypatch.setattr("tools.library.building.RECIPES", recipes)
    monkeypatch.setattr("tools.library.building.KINDS", {"tiny": ""})
    return recipes["tiny"]


def standing(folder):
    archive = Archive((folder / "tiny.zip").read_bytes(), "tiny.zip")
    return {name: archive.entry(name).status for name in archive.names}


def counting(monkeypatch, act=lambda count: None):
    """Count the solves of a build, and act before each."""
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        act(len(calls))
        return solve(*arguments, **options)

    monkeypatch.setattr("tools.library.building.solve", counted)
    return calls


def test_build_solves_what_is_new_and_keeps_the_rest(tmp_path, three, monkeypatch):
    """The second build solves nothing; a changed problem is solved again; the order is that of the recipes."""
    calls = counting(monkeypatch)
    build(tmp_path, time_limit=5)
    assert standing(tmp_path) == dict.fromkeys(("tiny-a", "tiny-b", "tiny-c"), "proved")
    before = (tmp_path / "tiny.zip").read_bytes()
    build(tmp_path, time_limit=5)
    assert (tmp_path / "tiny.zip").read_bytes() == before
    assert len(calls) == 3
    three["tiny-b"] = partial(draft, "tiny-b", (1, 1, 13))
    build(tmp_path, time_limit=5)
    assert len(calls) == 4


def test_build_without_time_only_draws(tmp_path, three):
    """Greedy values and elementary bounds; --resolve-open proves them, where the pattern fits."""
    build(tmp_path, time_limit=0)
    assert set(standing(tmp_path).values()) == {"open"}
    build(tmp_path, time_limit=5)
    assert set(standing(tmp_path).values()) == {"open"}
    build(tmp_path, time_limit=5, resolve_open=True, patterns=["*-b"])
    assert standing(tmp_path) == {"tiny-a": "open", "tiny-b": "proved", "tiny-c": "open"}


def test_ctrl_c_during_a_build_keeps_what_is_done(tmp_path, three, monkeypatch):
    """Entries solved so far are written, the others are as they were, and a rerun goes on."""

    def press(count):
        if count == 2:
            raise KeyboardInterrupt

    counting(monkeypatch, press)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, time_limit=5)
    assert standing(tmp_path) == {"tiny-a": "proved", "tiny-b": "open", "tiny-c": "open"}
    counting(monkeypatch)
    build(tmp_path, time_limit=5, resolve_open=True)
    assert set(standing(tmp_path).values()) == {"proved"}


def test_a_contradiction_stops_a_build_and_keeps_what_is_done(tmp_path, three, monkeypatch):
    """A solver that proves too much in the second entry: an error, and the first entry is written."""

    calls = []

    def wrongly(problem, **options):
        calls.append(1)
        result = solve(problem, **options)
        return result if len(calls) == 1 else replace(result, bound=10, proof="exhaustion")

    monkeypatch.setattr("tools.library.building.solve", wrongly)
    with pytest.raises(CertificateError, match=r"^tiny-b: .* proved the bound 10"):
        build(tmp_path, time_limit=5)
    assert standing(tmp_path) == {"tiny-a": "proved", "tiny-b": "open", "tiny-c": "open"}


def test_the_command_of_the_upkeep(tmp_path, three, capsys):
    """It writes the files, says what is new, and nothing where nothing is."""
    assert main(["--out", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["--out", str(tmp_path), "--resolve-open"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["--out", str(tmp_path / "none")]) == 2
    assert "cannot write" in capsys.readouterr().err
