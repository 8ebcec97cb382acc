"""Everything that a user can get wrong is one sentence and exit code 2, and leaves nothing behind."""

import json

import pytest
from cli.terminal import lbopt

PROBLEM = {"format": "lbopt-step-problem", "version": 1, "base": [10, 3, 5], "slots": [1, 2, 0], "work": [4, 7, 9, 2]}
TINY = ("-n", 60, "-G", 3, "-B", 4)
OWN = ("--prompt-column", "p", "--output-column", "o")

ROUTERS = """
import numpy as np
def raises(o): raise RuntimeError("boom")
def none(o): return None
def floats(o): return [0.0] * o.sizes.size
def strings(o): return ["a"] * o.sizes.size
def few(o): return [0]
def many(o): return [-1] * (o.sizes.size + 1)
def outside(o): return [99] * o.sizes.size
def below(o): return [-2] * o.sizes.size
def full(o): return [0] * o.sizes.size
def nothing(o): return [-1] * o.sizes.size
def writes(o): o.loads[0] = 1
def ragged(o): return [[1], [2, 3]]
def when(o): return []
when.admission = "sometimes"
value = 3
"""


@pytest.fixture(autouse=True)
def files(here):
    (here / "p.json").write_text(json.dumps(PROBLEM))
    (here / "times.csv").write_text("t,p,o\n" + "".join(f"{i},{i * 7 % 50 + 1},{i % 9 + 1}\n" for i in range(60)))
    (here / "instant.csv").write_text("t,p,o\n" + "".join(f"4,{i * 7 % 50 + 1},{i % 9 + 1}\n" for i in range(60)))
    (here / "bad.csv").write_text("t,p,o\n0,5,5\n1,x,5\n")
    (here / "short.jsonl").write_text('{"timestamp": 1, "input_len')
    (here / "bytes.bin").write_bytes(b"\xff\xfe\x00\x01" * 9)
    (here / "empty").write_text("")
    (here / "routers.py").write_text(ROUTERS)
    (here / "syntax.py").write_text("def f(:\n")
    (here / "imports.py").write_text("import not_there_at_all\n")
    (here / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (here / "foreign").mkdir()
    (here / "foreign" / "thesis.tex").write_text("x")


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def refused(type_in, here):
    """A function that types a command and demands a refusal that says `expected` and changes no file."""

    def call(expected, *words):
        before = contents(here)
        code, _, said = type_in(*words)
        assert code == 2, said
        assert "Traceback" not in said
        sentences = [line for line in said.splitlines() if line.startswith("error: ")]
        usage = "Usage:" in said and "Error" in said
        assert len(sentences) == 1 or usage, said
        assert expected in (sentences[0] if sentences else said)
        left = {name: data for name, data in contents(here).items() if "__pycache__" not in name}
        assert left == before

    return call


# ---------------------------------------------------------------- problems, results


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


# ---------------------------------------------------------------- fleets, arrivals, requests


@pytest.mark.parametrize("verb", ["simulate", "gap"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-n", 0), "number of requests is 0"),
        (("-n", -5), "number of requests is -5"),
        (("-n", "x"), "integer"),
        (("-G", 0), "num_workers is 0"),
        (("-B", 0), "slots_per_worker is 0"),
        (("-B", -1), "slots_per_worker is -1"),
        (("--kv-capacity", 0), "kv_capacity is 0"),
        (("--arrivals", "poisson"), "arrivals 'poisson'"),
        (("--draw", "lots"), "draw 'lots'"),
        (("--event-order", "random"), "event order 'random'"),
        (("--reveal-target", 0), "reveal_target is 0"),
        (("--reveal-target", -2), "reveal_target is -2"),
        (("--load", 0.9), "--arrivals trace"),
        (("--arrivals", "trace", "--reveal-target", 4), "reveal_target"),
        (("--arrivals", "trace", "--load", 0), "load is 0"),
        (("--arrivals", "trace", "--load", "nan"), "load is nan"),
        (("--arrivals", "trace", "--load", -1), "load is -1"),
        (("--arrivals", "trace"), "no arrival times"),
        (("--arrivals", "trace", "--load", 0.9), "no arrival times"),
        (("--seed", -1), "seed is -1"),
        (("--seed", 10**30), "seed"),
        (("--prompt-column", "p"), "--output-column"),
        (("--arrival-column", "t"), "column"),
        (("-p", "fcsf"), "unknown policy 'fcsf'"),
        (("-p", ""), "unknown policy"),
        (("-G", 10**25), "num_workers"),
        (("-B", 10**25), "slots_per_worker"),
        (("-B", 2**63 - 1), "slots_per_worker"),
        (("--reveal-target", 10**25), "reveal_target"),
        (("--kv-capacity", 10**25), "kv_capacity"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_fleets_and_requests_that_cannot_be(refused, verb, options, expected):
    """Each wrong option of a run is named, by both verbs that run."""
    more = ("--states", 1, "-o", "out") if verb == "gap" else ("-o", "out")
    refused(expected, verb, *TINY, *more, *options)


def test_a_pool_beyond_all_numbers_is_refused(here):
    """A revelation target near 2**63 must not reach the compiled loop: it would crash the process."""
    done = lbopt("simulate", *TINY, "--reveal-target", 2**63 - 1, cwd=here)
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("absent.csv",), "absent.csv"),
        (("foreign",), "folder"),
        (("empty",), "empty"),
        (("bytes.bin",), "bytes.bin"),
        (("short.jsonl",), "short.jsonl"),
        (("times.csv",), "header of no known trace"),
        (("bad.csv", *OWN), "line 3"),
        (("times.csv", "--prompt-column", "z", "--output-column", "o"), "no column 'z'"),
        (("times.csv", *OWN, "--arrivals", "trace"), "no arrival times"),
        (("times.csv", *OWN, "--format", "parquet"), "parquet"),
        (("times.csv", "--format", "azure"), "column"),
        (("burstgpt-lik",), "did you mean"),
        (("azure-2023-conv",), "lbopt traces fetch"),
        (("instant.csv", *OWN, "--arrival-column", "t", "--arrivals", "trace", "--load", 0.9), "one instant"),
        (("times.csv", *OWN, "-n", 1000, "--draw", "order"), "cannot take 1000 requests"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_traces_that_cannot_be(refused, monkeypatch, here, words, expected):
    """Each trace that cannot be read is named with the line or column at fault."""
    monkeypatch.setenv("LBOPT_CACHE", str(here / "foreign"))
    refused(expected, "simulate", *words, "-o", "out")


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("5", "FIRST:LAST"),
        ("a:b", "FIRST:LAST"),
        (":", "FIRST:LAST"),
        ("-1:5", "FIRST:LAST"),
        ("7:3", "is not first <= last"),
        ("0:5", "counted from 1"),
        ("1:999999", "goes beyond"),
        ("²:5", "FIRST:LAST"),
        ("1:2:3", "FIRST:LAST"),
    ],
)
def test_windows_that_cannot_be(refused, window, expected):
    """A window that is empty, misspelt or beyond the run is named, and nothing is written."""
    refused(expected, "simulate", *TINY, f"--window={window}", "-o", "out")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--states", 0), "states is 0"),
        (("--seeds", 0), "seeds is 0"),
        (("--time-limit", 0), "time_limit is 0"),
        (("--time-limit", -1), "time_limit is -1"),
        (("--time-limit", "nan"), "time_limit is nan"),
        (("--solver", "cplex"), "solver is 'cplex'"),
        (("--baseline", "br-0"), "not among the policies"),
        (("--baseline", "x"), "unknown policy 'x'"),
        (("-p", "random", "-p", "random"), "named twice"),
        (("--behaviour", "x"), "unknown policy 'x'"),
        (("--problems", "absent.jsonl"), "absent.jsonl"),
        (("--problems", "foreign"), "foreign"),
        (("--problems", "times.csv"), "line 1"),
        (("--problems", "empty"), "no step problem"),
        (("--problems", "bytes.bin"), "bytes.bin"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_gap_options_that_cannot_be(refused, options, expected):
    """Each wrong option of a study is named, and no folder is made."""
    refused(expected, "gap", *TINY, "-o", "out", *(() if "-p" in options else ("-p", "fcfs")), *options)


@pytest.mark.parametrize(
    "change",
    [
        {"step": "x"},
        {"step": None},
        {"step": 1e400},
        {"running": [1]},
        {"running": [-1, 0, 0]},
        {"waited": "a"},
        {"waited": [10**30] * 4},
        {"problem": 5},
        {"problem": {**PROBLEM, "base": [-1, 3, 5]}},
    ],
    ids=str,
)
def test_frozen_states_that_cannot_be(refused, here, change):
    """A broken line of steps.jsonl is named with its number."""
    good = {"behaviour": "fcfs", "step": 3, "running": [1, 1, 1], "waited": [0] * 4, "problem": PROBLEM}
    lines = [json.dumps(good), json.dumps(good | change)]
    (here / "steps.jsonl").write_text("\n".join(lines).replace("Infinity", "1e400"))
    refused("steps.jsonl, line 2", "gap", "--problems", "steps.jsonl", "-p", "fcfs", "-o", "out")


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("br-0:colour=3", "policy 'br-0' has no option 'colour'; it takes stage_switch, window"),
        ("br-0:window", "option window has no value; expected window=VALUE"),
        ("br-0:window=x", "window is 'x'"),
        ("br-0:window=0", "window is 0"),
        ("br-0:window=17", "window is 17"),
        ("br-0:key=price", "key is 'price'"),
        ("br-0:age_bound=-1", "age_bound is -1"),
        ("br-0:window=none", "window"),
        ("br-0:stage_switch=none", "stage_switch"),
        (f"br-0:stage_switch={10**20}", "stage_switch"),
        (f"br-0:age_bound={10**20}", "age_bound"),
        ("fcfs:admission=immediate", "admission 'immediate'"),
        ("jsq:admission=never", "admission 'never'"),
        ("max-min:scope=all", "scope 'all'"),
        ("bf-io:time_limit=0", "time_limit is 0"),
        ("bf-io:time_limit=nan", "time_limit is nan"),
        ("bf-io:solver=magic", "solver is 'magic'"),
        ("bf-io:age_bound=-3", "age_bound is -3"),
        ("bf-io:tally=3", "policy 'bf-io' has no option 'tally'; it takes solver, time_limit, age_bound"),
        ("absent.py:f", "No such file or directory; expected path"),
        ("routers.py", "needs a function: expected routers.py:function"),
        ("routers.py:absent", "no function 'absent'"),
        ("routers.py:value", "no function 'value'"),
        ("syntax.py:f", "SyntaxError"),
        ("imports.py:f", "ModuleNotFoundError"),
        ("leaves.py:f", "leaves.py"),
        ("routers.py:when", "admission 'sometimes'"),
        ("routers.py:raises", "raised RuntimeError in step 0: boom"),
        ("routers.py:none", "returned None"),
        ("routers.py:floats", "whole worker numbers"),
        ("routers.py:strings", "whole worker numbers"),
        ("routers.py:few", "shape (1,)"),
        ("routers.py:many", "shape (13,)"),
        ("routers.py:outside", "worker 99"),
        ("routers.py:below", "worker -2"),
        ("routers.py:full", "free slots"),
        ("routers.py:nothing", "admits nothing"),
        ("routers.py:writes", "read-only"),
        ("routers.py:ragged", "whole worker numbers"),
    ],
)
def test_policies_that_cannot_be(refused, policy, expected):
    """Each policy that cannot be built, loaded or followed is named with the option, value or step at fault."""
    refused(expected, "simulate", *TINY, "-p", policy, "-o", "out")


@pytest.mark.parametrize(
    ("policy", "option", "expected"),
    [
        ("jsq", ("-H", 5), "policy 'jsq' does not look ahead; leave --horizon and --predictor out"),
        ("bf-io", ("--predictor", "oracle"), "policy 'bf-io' looks 0 steps ahead; add --horizon, or leave --pred"),
        ("br-h:gate=none", (), "gate is 'none'; expected a number"),
        ("br-h", ("--predictor", "oracl"), "unknown predictor 'oracl': did you mean oracle?"),
        ("br-h", ("-H", -3), "horizon is -3; expected 0 to"),
        ("br-h", ("--train-share", 1), "train_share is 1.0; expected a share from 0 to less than 1"),
        ("br-h", ("--train-on", "absent.csv"), "no file, family or public trace 'absent.csv'"),
    ],
)
def test_windows_and_predictors_that_cannot_be(refused, policy, option, expected):
    refused(expected, "simulate", *TINY, "-p", policy, *option, "-o", "out")


LOG = "worker,start_step\n" + "".join(f"{i % 3},{i // 3}\n" for i in range(60))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "No such file"),
        ("", "CSV"),
        ("worker\n1\n", "lacks start_step or start_time"),
        ("start_step\n1\n", "lacks the column worker"),
        (LOG.replace("0,0", "9,0", 1), "names worker 9"),
        (LOG.replace("0,0", "-1,0", 1), "is -1"),
        (LOG.replace("0,0", "x,0", 1), "worker"),
        (LOG.replace("0,0", ",0", 1), "worker of row 0 is ''"),
        (LOG.replace("0,0", "0.5,0", 1), "0.5"),
        (LOG.replace("0,0", "0,-4", 1), "-4"),
        ("\n".join(LOG.splitlines()[:9]), "has 8 rows"),
        ("worker,start_step\n1,2,3\n1,2,3,4\n", "line 2: 3 fields"),
        (b"\xff\xfe\x00" * 9, "UTF-16 text"),
        (b"PK\x03\x04xx", "not a zip archive"),
        ("worker,start_step\n" + "0,0\n" * 60, "which has 4 free slots"),
        ("worker,start_step\n" + "".join(f"{i % 3},0\n" for i in range(60)), "row 12"),
        ("worker,start_step\n" + "".join(f"{i % 3},{i + 5}\n" for i in range(60)), "admits nothing"),
        ("worker,start_time\n0,x\n" + "1,2\n" * 59, "start_time"),
        ("worker,start_time\n0,\n" + "1,2\n" * 59, "start_time"),
    ],
    ids=range(19),
)
def test_logs_that_cannot_be_replayed(refused, here, text, expected):
    """A log that cannot be read or followed is named with its row."""
    if text is not None:
        (here / "log.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(expected, "simulate", *TINY, "-p", "replay:log.csv", "-o", "out")


# ---------------------------------------------------------------- folders


@pytest.mark.parametrize("verb", ["simulate", "gap"])
@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("p.json", "is a file"),
        ("foreign", "holds 'thesis.tex', which no earlier run of this kind wrote"),
        ("nowhere/out", "does not exist"),
        (".", "is the working directory"),
        ("foreign/..", "is the working directory"),
        ("..", "which no earlier run of this kind wrote"),
        ("/", "'/'"),
        ("p.json/out", "p.json"),
    ],
)
def test_folders_that_cannot_be_written(refused, verb, out, expected):
    """An output folder that cannot be is refused before any work is done."""
    refused(expected, verb, *TINY, "-o", out)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("absent", "not an output folder"),
        ("file", "not an output folder"),
        ("foreign", "not an output folder"),
        ({"version": 99}, "version 99"),
        ({"format": "other"}, "not written by a study of lbopt"),
        ({"interrupted": True}, "interrupted study; run its command again: lbopt gap"),
        ({"configuration": {}}, "configuration"),
        ({"configuration": None}, "configuration"),
        ("configuration", "configuration"),
        ("interrupted", "interrupted"),
        ("trace", "trace"),
        ("bytes", "run.json"),
        ("truncated", "not valid JSON"),
    ],
    ids=str,
)
def test_folders_that_cannot_be_rerun(type_in, refused, here, change, expected):
    """A folder that is missing, foreign, broken, interrupted or of another version is named with the reason."""
    if change in ("absent", "foreign"):
        refused(expected, "rerun", change)
        return
    if change == "file":
        refused(expected, "rerun", "p.json")
        return
    type_in("gap", *TINY, "--states", 1, "-p", "fcfs", "--no-long-runs", "-o", "out")
    path = here / "out" / "run.json"
    data = json.loads(path.read_text())
    if change == "bytes":
        path.write_bytes(b"\xff\xfe")
    elif change == "truncated":
        path.write_text(path.read_text()[:200])
    else:
        if isinstance(change, str):
            del data[change]
        else:
            data |= change
        path.write_text(json.dumps(data))
    refused(expected, "rerun", "out")


# ---------------------------------------------------------------- names that no file can have

LONG = "n" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("solve", LONG),
        ("solve", "p.json", "--write", LONG),
        ("verify", "p.json", LONG),
        ("audit", LONG),
        ("traces", "describe", LONG),
        ("gap", "burstgpt-like", "--problems", LONG, "--out", "o"),
        ("simulate", LONG),
        ("simulate", "burstgpt-like", *TINY, "-p", f"replay:{LONG}"),
        ("simulate", "burstgpt-like", *TINY, "-p", f"{LONG}:f"),
        ("simulate", "burstgpt-like", *TINY, "--out", LONG),
        ("cost", LONG),
        ("cost", "--loads", "1,2", "--running", "3", "--device", f"{LONG}.toml"),
        ("race", "-i", f"{LONG}.json"),
        ("hardware", "fit", LONG),
        ("hardware", "measure", "--out", f"{LONG}.toml"),
        ("rerun", LONG),
        ("study", "export", LONG),
        ("locality", "fit", LONG, "--workers", 2, "--out", "t.npz"),
    ],
    ids=lambda words: "-".join(str(word)[:9] for word in words),
)
def test_names_that_are_too_long(refused, words):
    """A name that no file can have is one short sentence, wherever it is given."""
    refused("nnnnnnnnnnn", *words)
