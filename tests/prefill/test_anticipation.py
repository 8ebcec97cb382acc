"""Sending ahead of the end of a pass: what is predicted, what a miss does, and what is won over late batches."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, Simulation, make_prefill_policy, simulate_prefill

CHUNK, UNITS, LATENCY = 3072, 8, 0.02
LAW = PassTime(0.08, 7e-5)


def fleet(policy, *, latency=LATENCY, allocation="backfill", law=LAW):
    return PrefillSetting(3, UNITS, policy, allocation, law, chunk_tokens=CHUNK, latency=latency)


def prompts(rate, count=6_000, seed=3):
    return PrefillRequests.poisson(rate, np.random.default_rng(seed).integers(1, 3000, count), seed=seed)


def test_the_law_is_learned_from_passes_that_ended():
    """A line through passes of a linear law is that law, so that no end is missed once two were seen."""
    simulation = Simulation(prompts(90.0, 2_000), fleet("anticipating:window=20"), 1)
    simulation.run()
    progress = simulation.state.progress
    assert progress.law_slope == pytest.approx(LAW.per_token, rel=1e-6)
    assert progress.law_seconds - progress.law_slope * progress.law_tokens == pytest.approx(LAW.base, rel=1e-6)
    assert np.abs(simulation.state.missed).max() < 1e-9
    assert progress.margin == 2.0**-10


def test_a_line_through_passes_of_another_law_stays_sensible():
    """Where the mean unit counts too the line has no negative part, and the margin knows its error."""
    simulation = Simulation(prompts(90.0), fleet("anticipating", law=PassTime(0.08, 3e-5, 2e-5, 6e-5)), 1)
    simulation.run()
    progress, missed = simulation.state.progress, simulation.state.missed
    assert 0 < progress.law_slope < 1.000001 * progress.law_seconds / progress.law_tokens
    assert progress.margin == pytest.approx(2 * np.sqrt(np.mean(missed**2))) and progress.margin > 2.0**-10


@pytest.mark.parametrize("error", [0.02, 0.1])
def test_the_error_is_as_large_as_was_asked(error):
    simulation = Simulation(prompts(90.0), fleet(f"anticipating:error={error},window=500"), 1)
    simulation.run()
    state = simulation.state
    of_a_pass = -state.missed / state.window
    assert of_a_pass.std() == pytest.approx(error, rel=0.1) and abs(of_a_pass.mean()) < 3 * error / np.sqrt(500)


def late_share(run):
    """The share of prompts that reached their instance in time for no pass to come: they waited while one ran."""
    p = run.passes
    began, reached = run.requests["began"], run.requests["dispatched"] + run.setting.latency
    late = np.zeros(len(run.traffic), bool)
    for g in range(run.setting.num_instances):
        starts = np.sort(p["start"][p["instance"] == g])
        mine = np.flatnonzero(run.requests["instance"] == g)
        before = starts[np.maximum(np.searchsorted(starts, began[mine]) - 1, 0)]
        late[mine] = (before < began[mine]) & (reached[mine] <= before)
    return late.mean()


def test_with_exact_predictions_every_batch_is_in_the_next_pass():
    """It waits on the device for the margin and what follows it, not for a pass; as printed it waits for passes."""
    ahead = simulate_prefill(prompts(120.0), fleet("anticipating"), seed=3)
    late = simulate_prefill(prompts(120.0), fleet("staggered:window=50", allocation="pbaa"), seed=3)
    assert ahead.metrics().wait_on_device_mean_seconds < 0.01 < 0.05 < late.metrics().wait_on_device_mean_seconds
    assert ahead.metrics().first_token_mean_seconds < 0.5 * late.metrics().first_token_mean_seconds
    assert late_share(ahead) < 0.01


def test_whoever_comes_late_is_in_the_pass_after_and_keeps_the_place():
    """With predictions a tenth off and no margin batches miss passes; still no unit gets more than a chunk for one."""
    setting = fleet("anticipating:error=0.1,margin=0", allocation="backfill:split=1000000", latency=0.05)
    run = simulate_prefill(prompts(150.0), setting, seed=3)
    assert (run.requests["passes"] == 1).all(), "prompts of at most a chunk are never split, late or not"
    reached = run.requests["dispatched"] + 0.05
    p, missed = run.passes, 0
    for g in range(3):
        start, end = (np.sort(p[name][p["instance"] == g]) for name in ("start", "end"))
        mine = reached[run.requests["instance"] == g]
        began = run.requests["began"][run.requests["instance"] == g]
        at = np.searchsorted(start, mine, side="right") - 1
        inside = (at >= 0) & (mine > start[at]) & (mine < end[at])
        assert (began[inside] >= end[at][inside] - 1e-12).all()
        index = np.searchsorted(start, began[inside])
        assert (index == at[inside] + 1).all(), "the very next one"
        missed += int(inside.sum())
    assert missed > 1000


@pytest.mark.parametrize("load", [60.0, 120.0, 145.0])
def test_less_than_round_robin_and_jsq_at_a_tenth_of_error(load):
    requests = prompts(load)
    means = [
        simulate_prefill(requests, fleet(policy, allocation=rule), seed=3).metrics().first_token_mean_seconds
        for policy, rule in (
            ("anticipating:error=0.1", "backfill"),
            ("round-robin", "round-robin"),
            ("jsq", "least-loaded"),
        )
    ]
    assert means[0] < 0.9 * min(means[1:])


def test_a_queue_that_fills_the_pass_is_not_held_back():
    """A hundred prompts at once on two idle instances: both get a batch in the same moment, despite any spacing."""
    requests = PrefillRequests(np.zeros(100), np.full(100, 1000))
    setting = PrefillSetting(2, UNITS, "anticipating:spacing=50", "backfill", LAW, CHUNK, latency=0.02, phases="free")
    run = simulate_prefill(requests, setting, seed=0)
    first = np.unique(run.requests["dispatched"])[0]
    assert set(run.requests["instance"][run.requests["dispatched"] == first].tolist()) == {0, 1}
    few = simulate_prefill(PrefillRequests(np.zeros(5), np.full(5, 1000)), setting, seed=0)
    assert set(few.requests["instance"].tolist()) == {0}


@pytest.mark.parametrize("allocation", ["backfill", "least-loaded"])
def test_what_one_unit_has_left_takes_nothing_from_the_others(allocation):
    """Six chunks on one unit: who comes during the first pass is on the other one in the second, not after them all."""
    requests = PrefillRequests([0.0, 0.5], [60, 8])
    setting = PrefillSetting(1, 2, "anticipating", allocation, PassTime(1.0, 0.0), 10, latency=0.0, phases="free")
    run = simulate_prefill(requests, setting, seed=0)
    assert run.requests["unit"].tolist() == [0, 1] and run.requests["finished"].tolist() == [6.0, 2.0]


@pytest.mark.parametrize(("late", "length", "passes"), [(0.9995, 3, 2), (0.9995, 4, 3), (1.0005, 3, 3)])
def test_who_comes_after_a_batch_and_fits_beside_it_is_in_its_pass(late, length, passes):
    """Two of 7 go a little more than 0.2 s before the end at 1.2 s and leave a third; 3 tokens are free beside each."""
    requests = PrefillRequests([0.0, 0.1, 0.1, 0.1, late], [10, 7, 7, 7, length])
    setting = PrefillSetting(1, 2, "anticipating", "backfill", PassTime(1.0, 0.0), 10, latency=0.2, phases="free")
    run = simulate_prefill(requests, setting, seed=0)
    ends = run.requests["finished"] - 0.2
    np.testing.assert_allclose(ends, [1, 2, 2, 3, passes])
    assert run.requests["deferred"].tolist() == [0, 0, 0, 1, 0]


def test_passes_shorter_than_the_latency_do_not_stop_it():
    """No batch could be in time for a pass that follows one shorter than the way; they are sent at once instead."""
    setting = PrefillSetting(
        2, 2, "anticipating", "backfill", PassTime(0.01, 0.0), 500, latency=0.5, engine="back-to-back"
    )
    run = simulate_prefill(PrefillRequests.poisson(50.0, 20, 1, 300), setting, seed=1)
    assert run.served.all() and (run.requests["dispatched"] - run.requests["arrival"]).max() < 1.0


def test_a_fleet_that_shrinks_gets_nothing_where_nobody_is():
    setting = PrefillSetting(3, 2, "anticipating", "backfill", LAW, CHUNK, latency=0.02, topology=((5.0, 1), (15.0, 3)))
    run = simulate_prefill(prompts(20.0, 500), setting, seed=1)
    sent = run.requests["dispatched"]
    away = (sent >= 5.0) & (sent < 15.0)
    assert set(run.requests["instance"][away].tolist()) == {0} and run.served.all()
    assert set(run.requests["instance"][sent > 15.0].tolist()) == {0, 1, 2}


@pytest.mark.parametrize("spec", ["anticipating", "anticipating:margin=1.5,spacing=0,window=8,error=0.1"])
def test_a_name_says_all(spec):
    policy = make_prefill_policy(spec)
    assert make_prefill_policy(policy.name) == policy
    assert policy.describe()["margin"] == policy.margin and policy.describe()["error"] == policy.error
    assert "margin" not in make_prefill_policy("pooled").describe()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("margin=-1", "margin is -1.0; expected 0 to 100"),
        ("error=nan", "error is nan; expected 0 to 10"),
        ("spacing=101", "spacing is 101.0; expected 0 to 100"),
        ("window=0", "window is 0; expected 1 to 65536 passes to learn from"),
        ("default_pass=0", "default_pass is 0.0 s; expected at least"),
    ],
)
def test_what_it_refuses(option, says):
    with pytest.raises(InputError, match=says):
        make_prefill_policy(f"anticipating:{option}")
