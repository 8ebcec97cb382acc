"""Everything that a user can get wrong is one sentence and exit code 2, and leaves nothing behind."""

import json

import pytest
from cli.bad_input import OWN, PROBLEM, TINY
from cli.bad_input import files as files
from cli.bad_input import refused as refused
from cli.terminal import lbopt

# ---------------------------------------------------------------- fleets, arrivals, requests


@pytest.mark.parametrize("verb", ["simulate", "gap"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-n", 0), "requests is 0"),
        (("-n", -5), "requests is -5"),
        (("-n", "x"), "integer"),
        (("-G", 0), "num_workers is 0"),
        (("-B", 0), "slots_per_worker is 0"),
        (("-B", -1), "slots_per_worker is -1"),
        (("--kv-capacity", 0), "kv_capacity is 0"),
        (("--arrivals", "poisson"), "arrivals 'poisson'"),
        (("--draw", "lots"), "unknown draw 'lots'"),
        (("--event-order", "random"), "event order 'random'"),
        (("--reveal-target", 0), "reveal_target is 0"),
        (("--reveal-target", -2), "reveal_target is -2"),
        (("--load", 0.9), "arrivals=trace"),
        (("--arrivals", "trace", "--reveal-target", 4), "reveal_target"),
        (("--arrivals", "trace", "--load", 0), "load is 0"),
        (("--arrivals", "trace", "--load", "nan"), "load is nan"),
        (("--arrivals", "trace", "--load", -1), "load is -1"),
        (("--arrivals", "trace"), "no arrival times"),
        (("--arrivals", "trace", "--load", 0.9), "no arrival times"),
        (("--seed", -1), "seed is -1"),
        (("--seed", 10**30), "seed"),
        (("--prompt-column", "p"), "whose requests are drawn"),
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


@pytest.mark.parametrize(
    ("option", "value"),
    [("--effort", "9" * 401), ("--effort", "9" * 25), ("--seeds", "9" * 401), ("--time-limit", "1e400")],
)
@pytest.mark.parametrize("verb", ["gap", "hindsight"])
def test_numbers_beyond_all_kinds_are_refused_before_anything_runs(refused, verb, option, value):
    """They ended in a traceback after the study, or were infinite where the folder was written."""
    if (verb, option) != ("hindsight", "--seeds"):  # it has one seed
        refused("expected a finite number, whole ones of 64 bits", verb, "burstgpt-like", *TINY, option, value)


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
        (("times.csv",), "does not say how many tokens a prompt has"),
        (("bad.csv", *OWN), "line 3"),
        (("times.csv", "--prompt-column", "z", "--output-column", "o"), "no column 'z'"),
        (("times.csv", *OWN, "--arrivals", "trace"), "no arrival times"),
        (("times.csv", *OWN, "--format", "parquet"), "parquet"),
        (("times.csv", "--format", "azure"), "column"),
        (("burstgpt-lik",), "did you mean"),
        (("azure-2023-conv",), "lbopt show traces azure-2023-conv --fetch"),
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
        ("jsq", ("-H", 5), "policy 'jsq' does not look ahead; leave horizon and predictor out"),
        ("bf-io", ("--predictor", "oracle"), "policy 'bf-io' looks 0 steps ahead; add horizon, or leave pred"),
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


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("absent", "not an output folder"),
        ("file", "of a problem name the result, too"),
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
        refused(expected, "verify", change)
        return
    if change == "file":
        refused(expected, "verify", "p.json")
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
    refused(expected, "verify", "out")


# ---------------------------------------------------------------- names that no file can have

LONG = "n" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("solve", LONG),
        ("solve", "p.json", "--write", LONG),
        ("verify", "p.json", LONG),
        ("audit", LONG),
        ("show", "traces", LONG),
        ("gap", "burstgpt-like", "--problems", LONG, "--out", "o"),
        ("simulate", LONG),
        ("simulate", "burstgpt-like", *TINY, "-p", f"replay:{LONG}"),
        ("simulate", "burstgpt-like", *TINY, "-p", f"{LONG}:f"),
        ("simulate", "burstgpt-like", *TINY, "--out", LONG),
        ("cost", LONG),
        ("cost", "--loads", "1,2", "--running", "3", "--device", f"{LONG}.toml"),
        ("fit", LONG),
        ("measure", "--out", f"{LONG}.toml"),
        ("verify", LONG),
        ("export", LONG),
        ("fit", LONG, "--workers", 2, "--out", "t.npz"),
    ],
    ids=lambda words: "-".join(str(word)[:9] for word in words),
)
def test_names_that_are_too_long(refused, words):
    """A name that no file can have is one short sentence, wherever it is given."""
    refused("nnnnnnnnnnn", *words)
