"""Prefill with messages is the compiled simulation where nothing goes wrong, and serves all where something does."""

import math

import numpy as np
import pytest
from prefill.protocol.one_world import differences
from prefill.protocol.unit_histories import run_and_check

from lbopt.exceptions import InputError
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.messages import MessageRun, Messages
from lbopt.prefill.protocol import ProtocolSetting
from lbopt.prefill.protocol.faults import FaultPlan, Outage

LENGTHS = np.random.default_rng(3).integers(1, 3000, 400)
REQUESTS = PrefillRequests.poisson(60.0, LENGTHS, seed=3)
HELD = PrefillSetting(3, 4, "staggered:window=20", "pbaa", PassTime(), 2048, latency=0.001)
BOUND = PrefillSetting(3, 4, "jsq", "least-loaded", PassTime(), 2048, latency=0.001)
MEDIAN = Messages(pace="median", polls=1.0)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_the_two_worlds_are_one(first):
    assert {seed: wrong for seed in range(first, first + 10) if (wrong := differences(seed))} == {}


@pytest.mark.slow
def test_the_two_worlds_are_one_many_times():
    assert {seed: wrong for seed in range(100, 2100) if (wrong := differences(seed))} == {}


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_histories_with_units(first):
    for seed in range(first, first + 30):
        run_and_check(seed)


@pytest.mark.slow
def test_many_histories_with_units():
    for seed in range(1000, 5000):
        run_and_check(seed)


def run(setting, faults, messages=MEDIAN) -> MessageRun:
    return simulate_prefill(REQUESTS, setting, seed=3, faults=faults, messages=messages)


def test_the_way_back_costs_time():
    away = simulate_prefill(REQUESTS, HELD, seed=3, messages=Messages(latency_back=0.02))
    at_once = simulate_prefill(REQUESTS, HELD, seed=3, messages=Messages(latency_back=0.0))
    assert away.first_token.mean() > at_once.first_token.mean() + 0.02
    assert away.metrics().first_token_mean_seconds > at_once.metrics().first_token_mean_seconds


FAULTS = {
    "ends lost": FaultPlan(lose=0.1),
    "mute": FaultPlan(mute=(Outage(0, 0.0, 1e3),)),
    "slow": FaultPlan(slow=0.05, slow_factor=7.0),
    "crash": FaultPlan(crashes=(Outage(0, 2.0, 4.0),), detection=1.0),
    "restart": FaultPlan(restarts=(Outage(0, 2.0, 3.0),)),
    "lost": FaultPlan(lose_batch=0.1, lose_answer=0.1),
    "partition": FaultPlan(partitions=(Outage(0, 2.0, 4.0),)),
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("moments", [True, False])
def test_every_prompt_is_served(kind, moments):
    outcome = run(HELD, FAULTS[kind], Messages(pace="median", polls=1.0, moments=moments))
    assert outcome.served.all() and outcome.stranded.size == 0
    assert (outcome.requests["began"] >= outcome.requests["dispatched"]).all()
    assert (outcome.requests["finished"] > outcome.requests["began"]).all()


def test_a_gateway_sends_again_only_what_a_health_check_takes_away():
    assert run(BOUND, FAULTS["crash"]).stranded.size == 0
    assert run(BOUND, FAULTS["crash"]).outcome.state.counts.again > 0
    lost = run(BOUND, FAULTS["lost"])
    assert 0.1 < lost.stranded.size / len(REQUESTS) < 0.28
    assert not lost.served[lost.stranded].any()
    assert 0 < run(BOUND, FAULTS["restart"]).stranded.size < 60
    # Who is cut off answers later, and what was sent again is computed twice.
    cut = run(BOUND, FAULTS["partition"])
    assert cut.stranded.size == 0
    assert cut.computed_twice > 0


@pytest.mark.parametrize("policy", ["random", "round-robin", "jsq", "jsq:by=tokens"])
def test_nobody_is_bound_to_whom_is_known_to_be_dead(policy):
    setting = PrefillSetting(3, 4, policy, "least-loaded", PassTime(), 2048, latency=0.001)
    dead = run(setting, FaultPlan(crashes=(Outage(0, 1.0, 1e3), Outage(1, 1.0, 3.0)), detection=0.0))
    assert dead.stranded.size == 0
    late = dead.requests["dispatched"] > 1.0
    assert (dead.requests["instance"][late] != 0).all()


def test_everybody_dead_means_waiting():
    plan = FaultPlan(crashes=tuple(Outage(g, 1.0, 3.0) for g in range(3)), detection=0.5)
    assert run(BOUND, plan).stranded.size == 0
    assert run(HELD, plan).stranded.size == 0


def test_what_messages_do_not_have():
    hits = np.zeros((400, 3, 4), dtype=np.int64)
    cached = PrefillRequests(REQUESTS.arrival, REQUESTS.length, hits)
    with pytest.raises(InputError, match="cached"):
        simulate_prefill(cached, HELD, seed=0, messages=Messages())
    for changes in ({"queue_limit": 3}, {"topology": ((1.0, 2),)}, {"policy": "anticipating:error=0.1"}):
        fields = {"policy": "pooled", "allocation": "pbaa", **changes}
        with pytest.raises(InputError):
            simulate_prefill(REQUESTS, PrefillSetting(3, 4, **fields), seed=0, messages=Messages())


def test_senseless_settings():
    for bad in (
        {"units": 2},
        {"units": 0, "allocation": "pbaa"},
        {"chunk": 0, "allocation": "pbaa"},
        {"target": "ring"},
        {"timer": "lattice"},
        {"engine": "back-to-back", "allocation": "pbaa"},
        {"engine": "back-to-back", "allocation": "pbaa", "announced": True, "timer": "tick"},
        {"latency_back": -1.0},
        {"interval": 0.0},
        {"target": "nobody", "allocation": "pbaa"},
        {"watchdog": math.inf},
    ):
        with pytest.raises(InputError):
            ProtocolSetting(2, **bad)
