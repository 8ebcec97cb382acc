"""Every verb does its work, and says so with its exit code."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from cli.terminal import ROOT, environment, lbopt

VERBS = ("audit", "gap", "simulate", "solve", "verify")
TINY = ("-n", 300, "-G", 3, "-B", 4)
GAP = ("gap", *TINY, "--behaviour", "fcfs", "--states", 3, "-p", "fcfs", "-p", "random", "--time-limit", 20)
PROBLEM = {"format": "lbopt-step-problem", "version": 1, "base": [10, 3, 5], "slots": [1, 2, 0], "work": [4, 7, 9, 2]}


@pytest.fixture
def problem(here):
    (here / "p.json").write_text(json.dumps(PROBLEM))
    return "p.json"


def example_of(verb):
    """The examples in a verb's help, as one line of a shell."""
    from lbopt.cli import VERBS
    from lbopt.cli.lazy import load

    text = load(verb, VERBS[verb].where).help
    found = re.findall(r"`(.*?)`", text[text.index("Example") :], flags=re.DOTALL)
    assert found, f"the help of {verb} has no example"
    return " && ".join(" ".join(line.split()) for line in found)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(type_in, verb):
    """--help ends well, shows what the verb does, and an example that begins with lbopt."""
    code, shown, _ = type_in(verb, "--help")
    assert code == 0
    assert "Example" in shown
    assert "object at 0x" not in shown and "MISSING" not in shown
    assert example_of(verb).startswith("lbopt ")


@pytest.mark.some(but=("gap", "verify"))
@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_every_verb_works_when_pasted(here, verb):
    """The example runs in a shell in the root of a checkout, with smaller numbers where the verb repeats a study."""
    examples = ROOT / "examples"
    if examples.is_dir():
        shutil.copytree(examples, here / "examples")
    tools = here / "bin"
    tools.mkdir()
    (tools / "lbopt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lbopt "$@"\n')
    (tools / "lbopt").chmod(0o755)
    line = example_of(verb)
    if verb == "verify":
        line = line.replace("--requests 2000 --states 10", "--requests 600 --states 2")
    done = subprocess.run(
        line,
        shell=True,
        cwd=here,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=environment(PATH=f"{tools}{os.pathsep}{os.environ['PATH']}"),
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout


def test_the_version_and_the_list_of_verbs(type_in):
    """--version prints it and leaves; --help names every verb; an unknown verb is a usage error."""
    from lbopt import __version__

    assert type_in("--version")[:2] == (0, f"lbopt {__version__}\n")
    code, shown, _ = type_in("--help")
    assert code == 0
    assert all(verb in shown for verb in (*VERBS, "show", "export"))
    assert type_in("improve")[0] == 2


def test_warm_compiles_what_a_verb_needs(type_in):
    """A bar while it compiles, then how long it took; nothing is left for the verb."""
    code, _, said = type_in("warm", "predict")
    assert code == 0
    assert "kernels are compiled; " in said


def test_gap_prints_tables_and_writes_a_report(type_in, here):
    """One command gives tables, a sentence and a folder; the command is stored as typed."""
    code, shown, _ = type_in(*GAP, "--out", "out folder")
    assert code == 0
    for part in ("gap to the optimum", "Long run", "fcfs", "random", "3 step problems"):
        assert part in shown
    assert "report: out folder/report.html" in shown
    run = json.loads((here / "out folder" / "run.json").read_text())
    assert run["command"].endswith("--out 'out folder'")


def test_gap_without_a_folder(type_in, here):
    """An empty --out prints and writes nothing."""
    assert type_in(*GAP, "--no-long-runs", "--out", "")[0] == 0
    assert list(here.iterdir()) == []


def test_gap_twice_into_one_folder(type_in, here):
    """The second report replaces the first."""
    for seed in (0, 1):
        assert type_in(*GAP, "--no-long-runs", "--seed", seed, "-o", "out")[0] == 0
    assert json.loads((here / "out" / "run.json").read_text())["configuration"]["seed"] == 1
    assert [p.name for p in here.iterdir()] == ["out"]


def test_gap_scores_frozen_problems(type_in, here):
    """--problems takes the steps.jsonl of an earlier study."""
    type_in(*GAP, "-o", "first")
    code, shown, _ = type_in("gap", "--problems", "first/steps.jsonl", "-p", "max-min", "-o", "second")
    assert code == 0
    assert "3 step problems" in shown
    first, second = ((here / name / "steps.jsonl").read_text().splitlines() for name in ("first", "second"))
    assert [json.loads(a)["problem"] for a in first] == [json.loads(b)["problem"] for b in second]


def test_rerun_says_identical_or_what_differs(type_in, here):
    """Exit code 0 for an untouched folder; 1, with file, row and column, after one number was changed."""
    type_in(*GAP, "-o", "out")
    code, shown, _ = type_in("verify", "out")
    assert (code, "identical" in shown) == (0, True)
    table = here / "out" / "long_runs.csv"
    with table.open(newline="") as stream:
        rows = list(csv.reader(stream))
    rows[1][rows[0].index("energy_joules")] = "1.5"
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    code, shown, _ = type_in("verify", "out")
    assert code == 1
    assert "long_runs.csv row 1 (fcfs), energy_joules: 1.5 then" in shown


@pytest.mark.more
def test_rerun_of_an_own_file_that_changed(type_in, here):
    """Where the trace file is not what it was, the difference is said to be there."""
    lines = [f"{i * 37 % 200 + 1},{i * 13 % 30 + 1}\n" for i in range(200)]
    (here / "own.csv").write_text("p,o\n" + "".join(lines))
    own = ("gap", "own.csv", "--prompt-column", "p", "--output-column", "o", *TINY[2:], "--states", 2, "-p", "fcfs")
    assert type_in(*own, "-o", "out")[0] == 0
    (here / "own.csv").write_text("p,o\n" + "".join(lines[::-1]))
    done = lbopt("verify", "out", cwd=here)  # a fresh process, as a user would
    assert done.returncode == 1
    assert "the requests of 'own.csv', digest: " in done.stdout


def test_simulate_prints_metrics_and_writes_tables(type_in, here):
    """One row per request and per step, and the metrics in run.json."""
    code, shown, _ = type_in("simulate", *TINY, "-p", "br-0", "-o", "run")
    assert code == 0
    assert "average imbalance (tokens)" in shown
    assert len((here / "run" / "requests.csv").read_text().splitlines()) == 301
    run = json.loads((here / "run" / "run.json").read_text())
    assert len((here / "run" / "steps.csv").read_text().splitlines()) > run["metrics"]["last_step"]


def test_a_run_can_be_replayed_from_its_own_table(type_in, here):
    """requests.csv is a log: replayed, it gives the same metrics."""
    type_in("simulate", *TINY, "-p", "br-0", "-o", "run")
    code, _, _ = type_in("simulate", *TINY, "-p", "replay:run/requests.csv", "-o", "again")
    assert code == 0
    metrics = [json.loads((here / n / "run.json").read_text())["metrics"] for n in ("run", "again")]
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize("window", ["1:1", "2:30", "1:500"])
def test_a_window_can_be_stated(type_in, here, window):
    """--window averages over its steps, and run.json stays valid JSON."""
    assert type_in("simulate", *TINY, "--window", window, "-o", "run")[0] == 0
    run = json.loads((here / "run" / "run.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert f"{run['metrics']['first_step']}:{run['metrics']['last_step']}" == window


def test_a_window_without_a_start_writes_valid_json(type_in, here):
    """In the drain nobody starts: what is not known is null in run.json, not NaN."""
    type_in("simulate", *TINY, "-o", "run")
    last = json.loads((here / "run" / "run.json").read_text())["metrics"]["last_step"]
    assert type_in("simulate", *TINY, "--window", f"{last + 2}:{last + 3}", "-o", "run")[0] == 0
    json.loads((here / "run" / "run.json").read_text(), parse_constant=lambda word: pytest.fail(word))


def test_solve_and_verify(type_in, problem, here):
    """The result of a solve verifies: exit code 0, and a line per established claim."""
    code, shown, _ = type_in("solve", problem, "--out", "r.json")
    assert code == 0
    assert "optimal (proved by exhaustion): imbalance 9" in shown
    code, shown, _ = type_in("verify", problem, "r.json")
    assert code == 0
    assert "established: " in shown
    assert sorted(p.name for p in here.iterdir()) == ["p.json", "r.json"]


def test_solve_by_all_solvers_says_who_proved_it_first(type_in, problem, here):
    """A line for each installed solver, and the prover's answer below, which is written and verifies."""
    code, shown, said = type_in("solve", problem, "--solver", "all", "--out", "r.json")
    assert code == 0, said
    assert "exact proved it first" in shown
    for name, ended in (("exact", "proved"), ("highs", "claimed"), ("cp-sat", "claimed")):
        assert re.search(rf"^{name} +9 +9 +[0-9.e-]+ +{ended}$", shown, re.MULTILINE)
    assert "optimal (proved by exhaustion): imbalance 9" in shown
    assert type_in("verify", problem, "r.json")[0] == 0
    code, _, said = type_in("solve", problem, "--solver", "all", "--effort", 5)
    assert code == 2 and "effort is for solver='exact'" in said


@pytest.mark.parametrize(
    "forgery",
    [
        {"objective": 8},
        {"bound": 10},
        {"bound": 4},
        {"status": "feasible"},
        {"problem_digest": "0" * 64},
        {"assignment": [0, 1, 1, 1]},
        {"assignment": [-1, -1, -1, -1]},
        {"assignment": [0, 1, 1, 2]},
        {"gap": 3},
        {"proof": "my word"},
        {"tie": "random"},
        {"stop_reason": "bored"},
    ],
    ids=str,
)
def test_verify_rejects_a_forged_result(type_in, problem, here, forgery):
    """One false claim is exit code 1 and a sentence that begins with rejected."""
    type_in("solve", problem, "--out", "r.json")
    data = json.loads((here / "r.json").read_text())
    (here / "r.json").write_text(json.dumps(data | forgery))
    code, _, said = type_in("verify", problem, "r.json")
    assert code == 1
    assert said.startswith("rejected: ")


def test_solve_takes_a_line_of_frozen_states(type_in):
    """--line picks a state of a study; the programs of other tools are written beside it."""
    type_in(*GAP, "--no-long-runs", "-o", "out")
    assert type_in("solve", "out/steps.jsonl", "--line", 3, "--write", "a.lp", "--tie", "leximax")[0] == 0
    assert type_in("solve", "out/steps.jsonl", "--line", 4)[0] == 2


@pytest.mark.parametrize(
    "options",
    [
        ("-G", 1),
        ("-B", 1),
        ("-n", 1),
        ("--reveal-target", 1),
        ("--reveal-target", 5000),
        ("--kv-capacity", 1),
        ("--event-order", "theory"),
        ("--seed", 3_000_000_000),
    ],
    ids=str,
)
def test_odd_but_legal_fleets(type_in, options):
    """One worker, one slot, one request, one waiting, everybody waiting: all are runs."""
    assert type_in("simulate", *TINY, *options)[0] == 0


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (["100,10,0"] * 60, ()),
        ([f"0,{i % 20 + 1},{i}" for i in range(60)], ()),
        ([f"{i * 37 % 200 + 1},1,{i}" for i in range(60)], ()),
        (["1000000000,3,0", "5,2,1", "7,2,1"], ()),
        ([f"{i * 37 % 200 + 1},{i % 9 + 1},7" for i in range(60)], ("--arrivals", "trace")),
        ([f"{i * 37 % 200 + 1},{i % 9 + 1},{i}" for i in range(60)], ("--arrivals", "trace", "--load", 0.1)),
        ([f"{i * 37 % 200 + 1},{i % 9 + 1},{i}" for i in range(60)], ("--arrivals", "trace", "--load", 2.0)),
    ],
    ids=["equal", "empty prompts", "outputs of one", "giant", "one instant", "idle", "overload"],
)
def test_odd_but_legal_traces(type_in, here, rows, options):
    """Equal sizes, no prompts, single tokens, giants, one instant, too little and too much load: all are runs."""
    (here / "a trace.csv").write_text("p,o,t\n" + "\n".join(rows) + "\n")
    code, shown, said = type_in(
        "simulate",
        here / "a trace.csv",
        "--prompt-column",
        "p",
        "--output-column",
        "o",
        "--arrival-column",
        "t",
        "-G",
        3,
        "-B",
        4,
        *options,
    )
    assert code == 0, said
    assert "nan" not in shown


@pytest.mark.parametrize("name", ["run[1]", "run[a]", "run[red]x", "a[/b]"])
def test_brackets_in_names_are_printed_as_they_are(type_in, here, name):
    """A folder called with brackets is not taken for markup."""
    (here / name).parent.mkdir(exist_ok=True)
    code, shown, _ = type_in("simulate", *TINY, "-o", name)
    assert code == 0
    assert f"tables: {name}" in shown


@pytest.mark.more
def test_a_narrow_dumb_terminal(here):
    """TERM=dumb and 60 columns give a table without escape codes in which every number is whole."""
    done = lbopt("simulate", *TINY, cwd=here, TERM="dumb", COLUMNS="60")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "…" not in done.stdout.replace(" … ", "")


@pytest.mark.more
def test_a_closed_pipe_does_not_cost_the_report(here):
    """`lbopt gap ... | head -1` loses the end of the tables, not the results of the study."""
    line = " ".join(map(str, (f'"{sys.executable}" -m lbopt', *GAP, "-o out | head -n 1")))
    done = subprocess.run(
        line, shell=True, cwd=here, env=environment(), capture_output=True, text=True, timeout=400, check=False
    )
    assert "Traceback" not in done.stderr
    assert (here / "out" / "report.html").is_file()
