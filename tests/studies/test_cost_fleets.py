"""Other fleets of a cost study: routers run again, or the normal law's maximum where only means are known."""

import pytest

from lbopt.exceptions import InputError
from lbopt.policies import make_policy
from lbopt.simulator import simulate
from lbopt.studies.cost import LEVEL, LoadPoint, Rerun, run_cost
from lbopt.studies.cost.what_if import by_order_statistics, changed, parse_change
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from lbopt.theory.laws.normal_maximum import expected_maximum
from tests.studies.cost_cases import POINT, config


def test_from_means_alone_the_heaviest_follows_the_normal_law():
    more = by_order_statistics(POINT, 32)
    assert more.mean_load == POINT.mean_load
    ratio = (more.max_load - more.mean_load) / (POINT.max_load - POINT.mean_load)
    assert ratio == pytest.approx(expected_maximum(32) / expected_maximum(8))
    outcome = run_cost([POINT], config(), what_if=("workers", [16, 32]))
    assert [what.change for what in outcome.what_if] == ["workers=16", "workers=32"]
    assert any("in proportion to the normal law's maximum" in note for note in outcome.notes)
    with pytest.raises(InputError, match="one worker has no imbalance"):
        by_order_statistics(LoadPoint.of_loads([5.0], 1), 4)


def test_a_simulated_fleet_is_that_of_a_study_of_its_own():
    scenario = Scenario(requests=RequestSource(trace="burstgpt-like", count=1500), num_workers=4, slots_per_worker=24)
    rerun = Rerun(scenario, {"jsq": ("jsq", {}), "br-0": ("br-0", {})}, (5,))
    outcome = run_cost([POINT], config(), what_if=("workers", [8]), rerun=rerun)
    points = [cost.point for cost in outcome.what_if[0].devices[0].points]
    assert [point.label for point in points] == ["jsq", "br-0", LEVEL]
    wider = Scenario(requests=RequestSource(trace="burstgpt-like", count=3000), num_workers=8, slots_per_worker=24)
    metrics = simulate(wider.requests.draw_for(5), make_policy("jsq"), wider.setting, seed=5).metrics()
    assert points[0].imbalance == pytest.approx(metrics.imbalance_tokens)
    assert points[0].num_workers == 8


def test_another_fleet_gets_requests_in_proportion(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("a,b\n" + "100,5\n" * 50)
    source = RequestSource(trace=str(file), prompt_column="a", output_column="b")
    scenario = Scenario(requests=source, num_workers=2, slots_per_worker=4, reveal_target=8)
    twice = changed(scenario, "workers", 4)
    assert (twice.requests.count, twice.requests.draw, twice.reveal_target) == (100, "resample", 16)
    half = changed(scenario, "slots", 2)
    assert (half.requests.count, half.requests.draw, half.reveal_target) == (25, "auto", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker=4", "what-if 'worker=4' is not understood; expected workers=16,32,64 or slots=32,64"),
        ("workers", "what-if 'workers' is not understood"),
        ("workers=4,x", "'x' is not a number of workers; expected at least 2 workers"),
        ("workers=1", "'1' is not a number of workers"),
        ("slots=0", "'0' is not a number of slots; expected at least 1 slot"),
    ],
)
def test_changes_that_cannot_be_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_change(text, None)


def test_a_fleet_beyond_all_memory_is_refused_before_it_is_run():
    rerun = Rerun(Scenario(requests=RequestSource(trace="burstgpt-like")), {"jsq": ("jsq", {})}, (0,))
    with pytest.raises(InputError, match=r"what-if workers=900000: .* requests; expected at most 1,000,000"):
        parse_change("workers=8,900000", rerun)


def test_a_log_says_nothing_of_another_fleet():
    rerun = Rerun(
        Scenario(requests=RequestSource(trace="burstgpt-like")), {"replay:a.csv": ("replay:x/a.csv", {})}, (0,)
    )
    with pytest.raises(InputError, match=r"'replay:a.csv' is a log of what was done on 8 workers with 72 slots"):
        parse_change("workers=8", rerun)


def test_a_larger_fleet_under_the_clock_of_the_trace_has_less_to_do(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("a,b,t\n" + "".join(f"100,50,{k / 10}\n" for k in range(200)))
    source = RequestSource(trace=str(file), prompt_column="a", output_column="b", arrival_column="t", count=100)
    scenario = Scenario(requests=source, num_workers=2, slots_per_worker=8, arrivals="trace")
    outcome = run_cost(
        [POINT], config(), what_if=("workers", [2, 4]), rerun=Rerun(scenario, {"jsq": ("jsq", {})}, (0,))
    )
    before, after = (what.devices[0].points[0].point.running for what in outcome.what_if)
    assert after == pytest.approx(before / 2, rel=0.1)
    assert any("by the trace's own clock" in note for note in outcome.notes)


def test_plain_numbers_say_nothing_of_other_slots():
    with pytest.raises(InputError, match="plain numbers say nothing of other slots"):
        parse_change("slots=4", None)
