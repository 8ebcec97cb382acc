"""What `lbopt hindsight` shows and writes."""

from __future__ import annotations

import csv
import json

import pytest
from cli.conftest import here as here
from cli.conftest import type_in as type_in

import lbopt
from lbopt.report.hindsight_report import hindsight_csv, hindsight_sentences, hindsight_tables
from lbopt.studies.hindsight import HindsightConfig, run_hindsight
from lbopt.studies.hindsight import study as study_module

SMALL = {"policies": ["jsq", "max-min", "fcfs"], "requests": 120, "workers": 3, "slots": 4, "effort": 2}


@pytest.fixture(scope="module")
def outcome():
    return lbopt.in_hindsight(**SMALL)


def test_the_table_has_a_line_a_rule_and_the_sentence_names_the_fastest(outcome):
    (table,) = hindsight_tables(outcome)
    assert [row[0] for row in table.rows] == ["jsq", "max-min", "fcfs"]
    assert all(len(row) == len(table.headers) for row in table.rows)
    (sentence,) = hindsight_sentences(outcome)
    best = min(outcome.rules, key=lambda one: one.seconds)
    assert sentence.startswith(f"{best.rule}, the fastest of these rules, takes ")
    assert f"{100 * (best.ratio.high - 1):.1f} % longer than a router that had known all lengths" in sentence


def test_rules_with_the_same_starts_share_an_optimum(outcome):
    """`max-min` and `fcfs` differ in the worker alone; the best placement of either is tried for both."""
    jsq, max_min, fcfs = outcome.rules
    assert max_min.timetable == fcfs.timetable == 0 != jsq.timetable
    assert max_min.optimum_seconds == fcfs.optimum_seconds == max_min.first_come_seconds
    assert {"fcfs", "max-min"} <= set(outcome.intervals[0].placed.tried)


def test_rows_have_full_precision_and_no_infinities(outcome):
    for row, one in zip(hindsight_csv(outcome), outcome.rules, strict=True):
        assert row["ratio_low"] == one.ratio.low
        assert row["imbalance_tokens"] == one.imbalance
        assert row["imbalance_above_tokens_low"] == one.imbalance - one.optimum_imbalance.high >= 0
        assert row["imbalance_above_tokens_high"] == one.imbalance - one.optimum_imbalance.low
        assert "inf" not in [str(value) for value in row.values()]
    assert list(outcome.to_frame()["rule"]) == ["jsq", "max-min", "fcfs"]
    assert set(outcome.to_frame("searches")["timetable"]) == {0, 1}
    assert repr(outcome) == "<HindsightOutcome burstgpt-like: 3 rules, 2 intervals>"


def test_the_folder(type_in, here):
    words = "hindsight burstgpt-like -n 60 -G 2 -B 3 -p jsq -p auto --effort 1 -o out"
    code, shown, said = type_in(*words.split())
    assert code == 0, said
    assert "In hindsight: burstgpt-like, 60 requests" in shown and "longer than a router" in shown
    with (here / "out" / "hindsight.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rule"] for row in rows] == ["jsq", "auto"]
    account = json.loads((here / "out" / "run.json").read_text())
    lows = [one["barriers"][0] for one in account["timetables"]]
    highs = [one["barriers"][1] for one in account["timetables"]]
    assert all(low <= high for low, high in zip(lows, highs, strict=True))
    assert (here / "out" / "hindsight.png").exists()


def test_ctrl_c_keeps_the_rules_that_have_run(monkeypatch):
    calls = []

    def simulate(*given, **named):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(given[1].name)
        return real(*given, **named)

    real = study_module.simulate
    monkeypatch.setattr(study_module, "simulate", simulate)
    config = HindsightConfig(policies=("fcfs", "jsq", "auto"))
    small = lbopt.studies.requests.RequestSource(count=60)
    scenario = lbopt.studies.scenario.Scenario(requests=small, num_workers=2, slots_per_worker=3)
    outcome = run_hindsight(HindsightConfig(policies=config.policies, scenario=scenario))
    assert outcome.interrupted
    assert [one.rule for one in outcome.rules] == ["fcfs", "jsq"]
    assert all(one.ratio.low >= 1 - 1e-9 for one in outcome.rules)


def test_a_typo_is_one_sentence(type_in, here):
    code, _, said = type_in(*["hindsight", "burstgpt-like", "-p", "autoo"])
    assert code == 2 and said.splitlines()[-1].startswith("error: unknown policy 'autoo'")
    code, _, said = type_in(*["hindsight", "nowhere.csv"])
    assert code == 2 and said.splitlines()[-1].startswith("error: ") and "nowhere.csv" in said
