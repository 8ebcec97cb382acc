"""The live state decides as the simulator does: both go over the same requests, and every placement is compared."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.instances import generate
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import FleetState
from lbopt.serving.state.group import chosen
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, simulate

G, B = 4, 6


def drive(trace, policy, run, training=None, seed=0):
    """Drive the pure state over the course of a run: arrivals at its moments, a token a step for each that runs."""
    rule = LiveRule(policy, num_workers=G, slots=B, training=training)
    fleet = FleetState(seed=seed, draws=rule.draws)
    group = fleet.add_group("g", "m")
    for g in range(G):
        fleet.worker_up("g", str(g), B)
    times = isinstance(run.setting.arrivals, TraceTimes)
    arrival = run.requests["reveal_clock"] if times else None
    reveal_step = run.requests["reveal_step"]
    N, trackers, clock, step = len(trace), [], 0.0, 0
    worker, start = np.full(N, -1), np.full(N, -1)

    def note(dispatches):
        for tracker, mirror in dispatches:
            assert fleet.dispatched(tracker, mirror, clock)
            worker[tracker.number] = group.workers.index(mirror)

    def is_known(i):
        return arrival[i] <= clock if times else reveal_step[i] <= step

    while True:
        while len(trackers) < N and is_known(len(trackers)):
            tracker = fleet.arrived("m", int(trace.prompt[len(trackers)]), clock)
            fleet.prefilled(tracker, clock)
            trackers.append(tracker)
        if rule.is_immediate:
            for tracker in list(group.pool):
                mirror = rule.bind(rule.see(group, [tracker], clock))
                if mirror is None:
                    break
                note([(tracker, mirror)])
        elif len(group.pool) and group.free_slots:
            sight = rule.see(group, list(group.pool), clock)
            note(chosen(sight, rule.decide(sight)))
        running = [t for w in group.workers for t in w.running.values()]
        for tracker in running:
            start[tracker.number] = tracker.started_step
        if not running:
            if len(trackers) == N:
                break
            clock = max(clock, arrival[len(trackers)])  # idle: the clock jumps
            continue
        assert [w.load for w in group.workers] == run.steps["barrier_loads"][step].tolist()
        for tracker in running:
            fleet.tokens(tracker, 1, tracker.attempt)
        for tracker in sorted(running, key=lambda t: t.number):
            if tracker.generated == trace.output[tracker.number]:
                fleet.finished(tracker, clock, tracker.attempt)
                rule.tell_ended(tracker)
        clock, step = run.steps["clock"][step], step + 1
        assert group.step == step
    return worker, start


POOLED = ["auto", "br-0", "max-min", "fcfs", "jsq-load", "iqr", "tensorrt-llm", "br-0:age_bound=5", "bf-io"]
BOUND = [
    *("round-robin", "jsq", "random", "power-of-two", "vllm", "vllm:version=2025", "sglang", "dynamo", "llm-d", "smg"),
    *("br-0-bypass", "br-0-bypass:overbooking=none,ties=index", "lmdeploy", "vllm-ascend", "tpu-inference"),
]
LEARNING = ["br-h:horizon=20", "fast-phi"]


@pytest.mark.some(26)
@pytest.mark.parametrize("arrivals", [ClosedLoop(), TraceTimes(load=0.9)], ids=["closed", "open"])
@pytest.mark.parametrize("name", [*POOLED, *BOUND, *LEARNING])
def test_every_decision_is_that_of_the_simulator(name, arrivals):
    """Worker and start of each of 250 requests are the same, and the loads of all workers in every step."""
    trace = generate("burstgpt-like", 250, seed=3, rate=5.0)
    training = generate("burstgpt-like", 300, seed=4) if name in LEARNING else None
    setting = SimulationSetting(Fleet(G, B), arrivals=arrivals)
    run = simulate(trace, make_policy(name), setting, seed=7, keep_loads=True, training=training)
    worker, start = drive(trace, make_policy(name), run, training, seed=7)
    assert worker.tolist() == run.requests["worker"].tolist()
    assert start.tolist() == run.requests["start_step"].tolist()
