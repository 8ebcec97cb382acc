"""The same answer over HTTP: client, router, engines and record on a virtual clock, beside the simulator.

The router decides at the ends of steps (`decide=step`). Every request must go to the worker that the simulator chose,
in the same step; every step must have the same loads and last as long; every client must get its last byte at the
moment at which the simulator ends its request. All comparisons are exact.
"""

from __future__ import annotations

import numpy as np
import pytest
from serving.over_http import over_http

from lbopt.hardware import make_step_time
from lbopt.instances import generate
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, TraceTimes, simulate

LAW = "affine:fixed=0.02,per_token=2e-6"

POOLED = ["auto", "br-0", "max-min", "fcfs", "jsq-load", "iqr", "br-0:age_bound=5", "tensorrt-llm", "bf-io"]
BOUND = ["round-robin", "jsq", "random", "power-of-two", "vllm", "sglang", "dynamo", "br-0-bypass"]
BOUND += ["smg", "llm-d", "lmdeploy", "vllm-ascend", "tpu-inference"]
LEARNING = ["br-h:horizon=20", "fast-phi"]
QUICK = ["auto", "br-0:age_bound=5", "jsq-load", "bf-io", "br-0-bypass", "round-robin", "random", "sglang", "fast-phi"]


def compare(name, folder, count, workers=4, slots=6, load=0.9, family="burstgpt-like"):
    """Run both, and compare; returns how many placements were compared."""
    trace = generate(family, count, seed=3, rate=5.0)
    training = generate(family, 300, seed=4) if name in LEARNING else None
    policy, fleet = make_policy(name), Fleet(workers, slots)
    setting = SimulationSetting(fleet, arrivals=TraceTimes(load=load), step_time=make_step_time(LAW))
    run = simulate(trace, policy, setting, seed=7, keep_loads=True, training=training)
    times = run.requests["reveal_clock"].tolist()
    options = {"policy": name, "law": LAW, "workers": workers, "slots": slots, "seed": 7}
    seen = over_http(trace, times, folder, training=training, **options)

    assert seen.errors == []
    assert [row["ending"] for row in seen.outcomes] == ["finished"] * count
    names = {row["workers"][g]: g for row in seen.decisions for g in range(workers)}
    worker, start = np.full(count, -1), np.full(count, -1)
    for row in seen.decisions:
        for request, chosen in zip(row["requests"], row["chosen"], strict=True):
            if chosen >= 0:
                assert worker[request] == -1, "a request was placed twice"
                worker[request], start[request] = names[row["workers"][chosen]], row["step"]
    assert worker.tolist() == run.requests["worker"].tolist()
    if policy.admission != "immediate":  # one that was bound on arrival may have to wait for its slot
        assert start.tolist() == run.requests["start_step"].tolist()
    assert np.array_equal(seen.loads, run.steps["barrier_loads"])
    assert np.array_equal(seen.seconds, run.steps["seconds"])
    assert np.array_equal(seen.ends, run.requests["finish_clock"])
    return count


@pytest.mark.some(3)
@pytest.mark.parametrize("name", QUICK)
def test_router_and_simulator_choose_identically(name, tmp_path):
    compare(name, tmp_path, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*POOLED, *BOUND, *LEARNING])
def test_router_and_simulator_choose_identically_for_longer(name, tmp_path):
    """2,000 requests of longer answers on more workers, at a load at which the pool is long."""
    compare(name, tmp_path, 2000, workers=8, slots=16, load=0.97, family="azure-like")


def test_decisions_on_arrival_are_others(tmp_path):
    """The comparison can fail: a router that decides on arrival places some requests elsewhere."""
    trace = generate("burstgpt-like", 150, seed=3, rate=5.0)
    setting = SimulationSetting(Fleet(4, 6), arrivals=TraceTimes(load=0.9), step_time=make_step_time(LAW))
    run = simulate(trace, make_policy("jsq-load"), setting, seed=7)
    times = run.requests["reveal_clock"].tolist()
    options = {"policy": "jsq-load", "law": LAW, "workers": 4, "slots": 6, "decide": "arrival"}
    seen = over_http(trace, times, tmp_path, **options)
    assert not np.array_equal(seen.ends, run.requests["finish_clock"])
