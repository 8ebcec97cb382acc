"""Packaged problems: `lbopt show`, `solve` and `export`, and what they say of wrong words."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from cli.terminal import environment
from solvers.stated import stated

from lbopt import Result, StepProblem, verify
from lbopt.instances import library

# lbopt as it is, but whoever solves a second entry waits until Ctrl-C.
SLOW = """
import time
from pathlib import Path
import lbopt.studies.library as upkeep
honest, calls = upkeep.attempt, []
def slowly(*arguments, **options):
    calls.append(1)
    if len(calls) == 2:
        Path("there").touch()
        time.sleep(60)
    return honest(*arguments, **options)
upkeep.attempt = slowly
from lbopt.__main__ import main
main()
"""


def test_list_shows_every_entry(type_in):
    """One line per entry, with its numbers, and a count of the standings."""
    code, shown, _ = type_in("show", "problems")
    assert code == 0
    for name in library.names():
        assert re.search(rf"^{name} ", shown, re.MULTILINE)
    assert re.search(r"\d+ proved, \d+ searched, \d+ claimed, \d+ open", shown)


def test_list_as_json_has_the_same_numbers(type_in):
    """--json is one object per entry, with the filters applied."""
    code, shown, _ = type_in("show", "problems", "--class", "tiny", "--workers", 3, "--json")
    facts = json.loads(shown)
    assert code == 0
    assert [one["name"] for one in facts] == ["tiny-parity", "tiny-pacemaker", "tiny-full-fleet"]
    for one in facts:
        entry = library.load(one["name"])
        assert (one["best"], one["bound"], one["status"]) == (entry.best, entry.bound, entry.status)
        assert one["workers"] == entry.problem.num_workers == 3


def test_list_open_entries(type_in):
    """--open leaves what is not proved."""
    code, shown, _ = type_in("show", "problems", "--open", "--json")
    assert code == 0
    expected = [name for name in library.names() if library.load(name).status != "proved"]
    assert [one["name"] for one in json.loads(shown)] == expected


def test_show_tells_the_pedigree(type_in):
    """Explanation, origin, seed, best, bound and certificate of one entry; --json is the entry itself."""
    name = "steady-rich-burstgpt-g4-b72-r16-h0"
    entry = library.load(name)
    code, shown, _ = type_in("show", "problems", name)
    assert code == 0
    for part in (entry.explanation, entry.origin.source, str(entry.origin.seed), entry.record.bound_by, entry.status):
        assert part in shown
    code, shown, _ = type_in("show", "problems", name, "--json")
    assert library.Entry.from_dict(json.loads(shown)).to_dict() == entry.to_dict()


@pytest.mark.more
def test_solve_compares_with_what_is_known(type_in, here):
    """Every tiny entry is solved from scratch and matches; the results verify."""
    code, shown, _ = type_in("solve", "--class", "tiny", "--out", "results")
    names = library.names("tiny")
    assert code == 0
    assert f"{len(names)} matches" in shown
    assert sorted(path.name for path in (here / "results").iterdir()) == sorted(f"{n}.result.json" for n in names)
    for name in names:
        result = Result.from_json(here / "results" / f"{name}.result.json")
        assert verify(library.load(name).problem, result).objective_exact


def test_a_weak_solver_is_told_so(type_in, monkeypatch):
    """A value above the best known is worse; that is no error."""
    from lbopt.studies import library as upkeep

    def lazily(entry, **options):
        facts = {"bound": 0, "proof": None, "stop_reason": "time", "solver": "greedy", "seconds": 0.0}
        return upkeep.compared(entry, stated(entry.problem, [0, 1, -1], **facts))

    monkeypatch.setattr(upkeep, "attempt", lazily)
    code, shown, _ = type_in("solve", "tiny-makespan")
    assert code == 0
    assert "1 worse" in shown


def test_a_contradiction_is_exit_code_1(type_in, monkeypatch):
    """A proved bound above a known value is named, and the exit code says so."""
    from lbopt.studies import library as upkeep

    def wrongly(entry, **options):
        facts = {"proof": "exhaustion", "stop_reason": "proved", "solver": "exact", "seconds": 0.0}
        return upkeep.compared(entry, stated(entry.problem, [0, 1, -1], bound=10, **facts))

    monkeypatch.setattr(upkeep, "attempt", wrongly)
    code, shown, said = type_in("solve", "tiny-makespan")
    assert code == 1
    assert "contradiction" in shown
    assert "contradiction: tiny-makespan" in said
    assert "proved the bound 10" in said


@pytest.mark.more
def test_ctrl_c_keeps_what_is_done(here):
    """Ctrl-C in the second entry: exit code 130, the first is in the table and in the folder."""
    (here / "slow.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "slow.py", "solve", "tiny-admission", "tiny-makespan", "-o", "out"],
        cwd=here,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 100  # kernels may have to be compiled first
    while not (here / "there").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted: 1 of 2 entries were solved" in said
    assert "tiny-admission" in shown
    assert [path.name for path in (here / "out").iterdir()] == ["tiny-admission.result.json"]


def test_export_writes_the_problem(type_in, here):
    """JSON comes back as the same problem; MPS and LP are written for other tools."""
    name = "tiny-makespan"
    assert type_in("export", name)[0] == 0
    assert StepProblem.from_json(here / f"{name}.json") == library.load(name).problem
    for format, word in (("mps", "ROWS"), ("lp", "Minimize")):
        code, shown, _ = type_in("export", name, "--format", format)
        assert (code, shown.strip()) == (0, f"written: {name}.{format}")
        assert word in (here / f"{name}.{format}").read_text()
    assert type_in("export", name, "--out", "own.lp")[0] == 0
    assert "Minimize" in (here / "own.lp").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "problems", "tiny-makespam"), "did you mean 'tiny-makespan'"),
        (("solve", "tiny-makespam"), "did you mean 'tiny-makespan'"),
        (("export", "tiny-makespam"), "did you mean 'tiny-makespan'"),
        (("show", "problems", "--class", "stedy"), "did you mean 'steady'"),
        (("show", "problems", "--workers", 5, "--class", "tiny"), "there are some with 2, 3"),
        (("show", "problems", "--workers", 2, "--class", "tiny", "--open"), "leave no entry at all"),
        (("solve",), "or '*' for all of these"),
        (("solve", "tiny-makespan", "--line", 2), "--line does not concern packaged problems; leave it out"),
        (("solve", "tiny-makespan", "--solver", "exat"), "did you mean 'exact'"),
        (("solve", "tiny-makespan", "--time-limit", 0), "time_limit is 0"),
        (("solve", "tiny-makespan", "--out", "no/such"), "cannot make the folder 'no/such'"),
        (("export", "tiny-makespan", "--format", "xml"), "the format is 'xml'"),
        (("export", "tiny-makespan", "--format", "lp", "--out", "x.mps"), "expected the ending .lp"),
        (("export", "tiny-makespan", "--out", "no/such.json"), "cannot write 'no/such.json'"),
    ],
    ids=str,
)
def test_wrong_words_are_one_sentence(type_in, words, message):
    """Exit code 2 and one sentence that shows the way out."""
    code, _, said = type_in(*words)
    assert code == 2
    assert said.startswith("error: ")
    assert message in said
    assert len(said.strip().splitlines()) == 1
