"""Seconds of one round of the dispatcher: `python -m tests.benchmarks.serving_dispatch [--rounds 400]`.

No HTTP: the state of a full fleet, a pool of waiting requests, and a slot or some that are freed, round after round;
each round observes, decides and sends. P50 and P99 are of whole rounds; the goals are 0.5 ms at 16 workers with 200
waiting, and 2 ms at 144 with 500.
"""

from __future__ import annotations

import argparse
import asyncio
import time

import numpy as np

from lbopt.policies import make_policy
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.dispatcher import Dispatcher
from lbopt.serving.router.job import Job
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import FleetState

CASES = ((16, 200, 0.5), (144, 500, 2.0))
SLOTS = 72


async def measure(policy, workers, waiting, rounds):
    """Return the milliseconds of each round."""
    rng = np.random.default_rng(1)
    fleet = FleetState(draws=True)
    group = fleet.add_group("g", "m")
    mirrors = [fleet.worker_up("g", f"w{g}", SLOTS) for g in range(workers)]
    ask = Ask("m", True, 1, True, False, None)

    def arrive():
        tracker = fleet.arrived("m", int(rng.lognormal(6.5, 1.0)) + 1, 0.0)
        Job(tracker, ask, b"", "/v1/completions", {}, chat=False)
        fleet.prefilled(tracker, 0.0)
        return tracker

    for mirror in mirrors:
        for _ in range(SLOTS):
            fleet.dispatched(arrive(), mirror, 0.0)
    for _ in range(waiting):
        arrive()
    rule = LiveRule(make_policy(policy), num_workers=workers, slots=SLOTS)
    dispatcher = Dispatcher(fleet, {"g": rule}, {"g": rule}, lambda: 0.0, RouterOptions(age_bound=0.0))
    took = []
    for _ in range(rounds + 20):
        for _ in range(int(rng.integers(1, 6))):  # requests end, on average three a step
            mirror = mirrors[int(rng.integers(workers))]
            tracker = next(iter(mirror.running.values()))
            fleet.finished(tracker, 0.0, tracker.attempt)
        before = len(group.pool)
        begin = time.perf_counter()
        dispatcher.round()
        took.append(1000 * (time.perf_counter() - begin))
        for _ in range(before - len(group.pool)):
            arrive()
        for mirror in mirrors:
            for tracker in mirror.running.values():
                fleet.tokens(tracker, 1, tracker.attempt)
    return np.array(took[20:])


def main():
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--policy", action="append")
    arguments = parser.parse_args()
    for policy in arguments.policy or ["auto", "br-0", "jsq-load"]:
        for workers, waiting, goal in CASES:
            took = asyncio.run(measure(policy, workers, waiting, arguments.rounds))
            p50, p99 = np.quantile(took, [0.5, 0.99])
            print(f"{policy}: {workers} workers, {waiting} waiting: P50 {p50:.3f} ms, P99 {p99:.3f} ms (goal {goal})")


if __name__ == "__main__":
    main()
