"""Where slots are free, what rules do over time comes first: a gap of one step says little about it."""

from __future__ import annotations

import pytest

import lbopt
from lbopt.report.gap_report import is_saturated, lead, tables_in_order
from lbopt.report.study_report import write_study_folder

pytestmark = pytest.mark.jit

SMALL = {"workers": 4, "slots": 24, "states": 3, "policies": ["round-robin", "max-min"], "behaviours": ["fcfs"]}


def test_a_fleet_with_free_slots_is_judged_over_time():
    outcome = lbopt.gap("azure-like", requests=600, arrivals="trace", load=0.3, time_limit=5.0, **SMALL)
    assert not is_saturated(outcome)
    assert lead(outcome).startswith("Over time: max-min takes ")
    assert "full: rules differ over time" in lead(outcome)
    assert tables_in_order(outcome)[0].title.startswith("Long run")


def test_a_saturated_fleet_is_judged_by_steps_first():
    outcome = lbopt.gap("burstgpt-like", requests=600, time_limit=5.0, **{**SMALL, "slots": 8})
    assert is_saturated(outcome)
    assert lead(outcome).index("step problems") < lead(outcome).index("Over time:")
    assert tables_in_order(outcome)[0].title.startswith("One step")


def test_a_price_names_the_best_router_over_its_run(tmp_path):
    outcome = lbopt.gap("azure-like", requests=600, arrivals="trace", load=0.3, time_limit=5.0, **SMALL)
    write_study_folder("gap", outcome, tmp_path / "gap", "lbopt gap")
    from lbopt.report.cost_report import lead as price

    (sentence,) = price(lbopt.cost(tmp_path / "gap", devices=["h800"], router="round-robin", draws=100))
    assert "max-min over its own run" in sentence
    assert sentence.index("max-min over its own run") < sentence.index("the best next step alone")


def test_a_log_under_which_states_are_sampled_stands_in_every_table_of_runs(tmp_path):
    """It needs not be named as a policy too."""
    run = lbopt.simulate("azure-like", "round-robin", requests=300, workers=4, slots=8)
    run.request_table().to_csv(tmp_path / "log.csv", index=False)
    outcome = lbopt.gap(
        "azure-like",
        requests=300,
        workers=4,
        slots=8,
        states=2,
        policies=["jsq"],
        behaviours=[f"replay:{tmp_path / 'log.csv'}"],
        time_limit=5.0,
    )
    assert [one.policy for one in outcome.long_runs] == ["jsq", "replay:log.csv"]
    assert "replay:log.csv" in lead(outcome)
