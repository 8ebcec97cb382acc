"""`lbopt prefill` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.studies.prefill import study

TINY = ("azure-like", "-n", 600, "-N", 2, "-D", 2, "--chunk", 4096)


@pytest.fixture
def prefill(type_in):
    return lambda *words: type_in("prefill", *words)


@pytest.fixture
def rows_of(here):
    def read(name):
        with (here / "out" / f"{name}.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    return read


def test_rules_beside_each_other(prefill, here, rows_of):
    code, shown, heard = prefill(*TINY, "--load", 0.6, "-p", "jsq", "-p", "staggered/longest-first", "-o", "out")
    assert code == 0, heard
    for text in ("jsq/round-robin", "staggered/longest-first", "Time to first token: 600 prompts", "Instances"):
        assert text in shown
    rules = {f"{row['policy']}/{row['allocation']}": row for row in rows_of("rules")}
    assert list(rules) == ["jsq/round-robin", "staggered/longest-first"]
    asked = json.loads((here / "out" / "run.json").read_text())["configuration"]
    assert asked["rules"] == ["jsq", "staggered/longest-first"]
    assert asked["setting"]["chunk_tokens"] == 4096
    passes, requests = rows_of("passes"), rows_of("requests")
    for rule in rules:
        own = [row for row in requests if row["rule"] == rule]
        assert sum(int(row["length"]) for row in own) == sum(int(p["tokens"]) for p in passes if p["rule"] == rule)
        waits = [float(row["began"]) - float(row["arrival"]) for row in own][60:]
        assert float(rules[rule]["wait_mean_seconds"]) == pytest.approx(np.mean(waits))


def test_load_is_of_full_passes(prefill, here, rows_of):
    assert prefill(*TINY, "--load", 0.5, "-p", "pooled", "--base", 1.0, "--per-token", 0.001, "-o", "out")[0] == 0
    requests = rows_of("requests")
    mean = np.mean([int(row["length"]) for row in requests])
    saturation = 2 * 2 * 4096 / (1.0 + 4.096) / mean
    came = len(requests) / float(requests[-1]["arrival"])
    assert came == pytest.approx(0.5 * saturation, rel=0.15)


def test_times_of_the_trace(prefill, here, rows_of):
    assert prefill("azure-like", "-n", 50, "--arrivals", "trace", "--rate", 5, "-p", "pooled", "-o", "out")[0] == 0
    arrivals = [float(row["arrival"]) for row in rows_of("requests")]
    assert arrivals[-1] == pytest.approx(49 / 5)


def test_the_laws_pass_through(prefill, here, rows_of):
    words = ("--base", 0.5, "--per-token", 1e-3, "--per-longest", 2e-3, "--per-mean", 3e-3, "--latency", 0.25)
    code, _, heard = prefill(
        *TINY, "--rate", 3, *words, "--per-pass", 2, "--queue-limit", 4, "-p", "pooled/pbaa", "-o", "out"
    )
    assert code == 0, heard
    lengths = [int(row["length"]) for row in rows_of("requests")]
    arrival = [float(row["arrival"]) for row in rows_of("requests")]
    setting = PrefillSetting(
        2, 2, "pooled", "pbaa", PassTime(0.5, 1e-3, 2e-3, 3e-3), 4096, requests_per_pass=2, latency=0.25, queue_limit=4
    )
    run = simulate_prefill(PrefillRequests(arrival, lengths), setting, seed=0)
    (row,) = rows_of("rules")
    assert float(row["first_token_mean_seconds"]) == pytest.approx(run.metrics().first_token_mean_seconds)
    assert int(row["refused"]) == run.metrics().refused > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-N", 0), "there are 0 instances; expected at least 1"),
        (("--chunk", 0), "chunk_tokens is 0; expected at least 1 token"),
        (("--base", -1), "base is -1.0 s; expected 0 or more, as no pass takes negative time"),
        (("-p", "stagered"), "unknown prefill policy 'stagered'"),
        (("-p", "pooled/"), "rule 'pooled/' names no allocation behind its slash"),
        (("-p", "pooled/pba"), "unknown allocation 'pba'"),
        (("-p", "jsq/pbaa"), "allocation 'pbaa' holds requests back, but policy 'jsq' binds them on arrival"),
        (("--rate", 3, "--load", 0.5), "rate 3 and load 0.5 are both given"),
        (("--rate", 0), "rate is 0.0; expected more than 0 requests a second"),
        (("--no-chunk",), "without a chunk there is no saturation to take a load of; give a rate"),
        (("--no-chunk", "--chunk", 64, "--rate", 3), "a chunk of 64 tokens and no_chunk are both given"),
        (("-p", "pooled", "-p", "pooled/pbaa"), "rule 'pooled/pbaa' is named twice"),
        (("-p", "staggered/pbaa:whole=yes", "-p", "staggered:timer=spacing/pbaa:whole=yes"), "is named twice"),
        (("--arrivals", "uniform"), "unknown arrivals 'uniform'"),
        (("--engine", "steam"), "unknown engine 'steam'"),
        (("nowhere.csv",), "nowhere.csv"),
    ],
)
def test_bad_input(prefill, words, says):
    code, shown, heard = prefill(*words)
    assert code == 2
    assert says in heard
    assert heard.strip().count("\n") == 0, "one sentence"
    assert not shown


def test_ctrl_c_keeps_the_rules_that_have_ended(prefill, here, rows_of, monkeypatch):
    ended = []

    def interrupted(*words, **more):
        if ended:
            raise KeyboardInterrupt
        ended.append(words)
        return simulate_prefill(*words, **more)

    monkeypatch.setattr(study, "simulate_prefill", interrupted)
    code, shown, heard = prefill(*TINY, "-p", "random", "-p", "jsq", "-o", "out")
    assert code == 130
    assert "interrupted: 1 of 2 rules have ended" in heard
    assert "random/round-robin" in shown
    assert [row["policy"] for row in rows_of("rules")] == ["random"]
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True


def test_a_rule_that_does_not_keep_up_is_named(prefill):
    _, _, heard = prefill(*TINY, "--load", 3, "-p", "pooled/pbaa", "-p", "jsq")
    assert "pooled/pbaa does not keep up with this rate" in heard
    assert "jsq/round-robin does not keep up" in heard
    assert "keep up" not in prefill(*TINY, "--load", 0.6)[2]


def test_a_run_that_is_too_short_does_not_say_that_a_rule_falls_behind(prefill):
    code, _, heard = prefill("azure-like", "-n", 60, "--load", 0.3, "--latency", 10, "-p", "jsq")
    assert code == 0
    assert "whether jsq/round-robin keeps up with this rate is not seen" in heard
    assert "does not keep up" not in heard


@pytest.fixture
def at_one_time(here):
    rows = ["prompt,output,seconds", *["500,3,7.5"] * 40]
    (here / "burst.csv").write_text("\n".join(rows) + "\n")
    columns = ("--prompt-column", "prompt", "--output-column", "output", "--arrival-column", "seconds")
    return ("burst.csv", *columns, "--arrivals", "trace", "-p", "jsq")


def test_prompts_that_come_at_one_time(prefill, at_one_time, here):
    code, shown, heard = prefill(*at_one_time, "-o", "out")
    assert code == 0, heard
    assert "40 prompts of burst, all at one time" in shown
    assert json.loads((here / "out" / "run.json").read_text())["requests_per_second"] is None


def test_prompts_that_come_at_one_time_have_no_rate(prefill, at_one_time):
    code, _, heard = prefill(*at_one_time, "--rate", 10)
    assert code == 2
    assert "all arrivals of trace 'burst' are at one time" in heard


def test_with_faults(prefill, here, rows_of):
    words = (*TINY, "--load", 0.6, "-p", "jsq/least-loaded", "-p", "staggered:window=20")
    code, shown, heard = prefill(*words, "--fault", "lose_batch=0.05", "--fault", "crash=0@2-5", "-o", "out")
    assert code == 0, heard
    assert "Faults: lose_batch=0.05, crash=0@2-5" in shown and "stranded" in shown
    asked = json.loads((here / "out" / "run.json").read_text())["configuration"]
    assert asked["faults"] == ["lose_batch=0.05", "crash=0@2-5"]
    rules = {row["policy"]: row for row in rows_of("rules")}
    assert int(rules["jsq"]["refused"]) > 0 and int(rules["staggered:window=20"]["refused"]) == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("loose=0.1", "unknown fault 'loose'"),
        ("lose=much", "is no number"),
        ("crash=0", "no instance and times"),
        ("crash=7@1-2", "instance 7"),
        ("crash=0@2-1", "expected 0 <= start <= end"),
        ("lose=2", "a probability"),
    ],
)
def test_faults_that_are_none(prefill, word, said):
    code, _, heard = prefill(*TINY, "--load", 0.6, "--fault", word)
    assert code == 2 and said in heard


def test_a_fault_is_given_once(prefill):
    code, _, heard = prefill(*TINY, "--fault", "lose=0.1", "--fault", "lose=0.2")
    assert code == 2 and "given twice" in heard


def test_what_faults_do_not_go_with(prefill):
    code, _, heard = prefill(*TINY, "-p", "pooled", "--queue-limit", 9, "--fault", "lose=0.1")
    assert code == 2 and "queue_limit is 9" in heard


def test_a_fault_after_the_last_prompt_is_said(prefill):
    code, shown, heard = prefill(*TINY, "--load", 0.6, "-p", "jsq", "--fault", "crash=0@2000-2010")
    assert code == 0
    assert "instance 0 fails at 2000 s, but the last prompt comes at" in shown + heard
