"""The points of the waiting laws: a setting, its traffic, and the wait that the law gives.

Time is counted in passes. `python -m prefill.law_points [--slow]`, in the folder of the tests, prints the table.
"""

import argparse
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.theory.laws import waiting as law
from lbopt.theory.laws.waiting import bounded_wait, many_servers_wait, round_robin_wait

INSTANCES = (1, 2, 4, 8, 10, 16, 32)
LOADS = (0.05, 0.5, 2.0, 8.0)
RHOS = (0.5, 0.8, 0.9, 0.95)
PASS = PassTime.constant(1.0)


@dataclass(frozen=True)
class Point:
    """`load` requests per instance and pass; `replications` above 1: runs from phases of their own are averaged."""

    name: str
    policy: str
    N: int
    load: float
    predicted: float
    requests: int = 100_000
    replications: int = 1
    slow: bool = False
    rules: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.name}, N={self.N}, load={self.load:g}"

    def run(self, seed):
        setting = PrefillSetting(self.N, policy=self.policy, pass_time=PASS, **self.rules)
        return simulate_prefill(PrefillRequests.poisson(self.N * self.load, 1, seed, self.requests), setting, seed=seed)

    def interval(self, seed):
        """Return the mean wait and half its 99 % interval."""
        if self.replications == 1:
            found = self.run(seed).metrics(0.99)
            return found.wait_mean_seconds, found.wait_mean_seconds_interval[1] - found.wait_mean_seconds
        means = np.array([self.run(1000 * seed + each).wait.mean() for each in range(self.replications)])
        return means.mean(), stdtrit(means.size - 1, 0.995) * means.std(ddof=1) / means.size**0.5


def _points():
    bounded = {rho: bounded_wait(4 * rho, 4) for rho in RHOS}
    for N in INSTANCES:
        for load in LOADS:
            far = N not in (1, 4, 10) or load == 0.05
            given = {"N": N, "load": load, "slow": far}
            yield Point("random", "random", predicted=law.immediate_wait(load), **given)
            yield Point("spacing", "staggered", predicted=law.spacing_wait(N, load), **given)
            yield Point("tick", "staggered:timer=tick", predicted=law.tick_wait(N), **given)
            clocked = {"engine": "back-to-back"}
            yield Point("back to back", "random", predicted=law.back_to_back_wait(), rules=clocked, **given)
            lattice = {**clocked, "phases": "even"}
            yield Point("lattice", "pooled", predicted=law.tick_wait(N), rules=lattice, **given)
            frozen = {"requests": 2_000, "replications": 100, "rules": clocked}
            yield Point("random phases", "pooled", predicted=law.frozen_pool_wait(N), **given, **frozen)
            if N > 1 and (wait := round_robin_wait(N, load)) > 1e-3:
                yield Point("round-robin", "round-robin", predicted=wait, **given)
        for rho in RHOS:
            load, rules = 4 * rho, {"requests_per_pass": 4}
            slow = N not in (1, 10) or rho > 0.8
            many = {"requests": 400_000 + 80_000 * N if rho > 0.8 else 100_000, "slow": slow, "rules": rules}
            yield Point("random, c=4", "random", N, load, bounded[rho], **many)
            yield Point("spacing, c=4", "staggered", N, load, bounded[rho] / N, **many)
        with_latency = {"latency": 0.25, "engine": "work-conserving"}
        at_scheduler = law.spacing_wait(N, 8.0 * 1.25, 1.25)
        yield Point(
            "spacing, latency T/4", "staggered", N, 8.0, at_scheduler + 0.25, rules=with_latency, slow=N not in (1, 10)
        )
        tick = law.tick_wait(N, 1.25) + 0.25
        yield Point(
            "tick, latency T/4", "staggered:timer=tick", N, 8.0, tick, rules=with_latency, slow=N not in (1, 10)
        )
    for rho in (0.5, 0.8, 0.9):
        one = {"requests": 1_000_000 if rho > 0.5 else 200_000, "rules": {"requests_per_pass": 1}, "slow": rho > 0.8}
        yield Point("M/D/1", "pooled", 1, rho, law.single_server_wait(rho), **one)
        yield Point("M/D/10", "pooled", 10, rho, many_servers_wait(10, rho), **one)


POINTS = tuple(_points())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true")
    chosen = [point for point in POINTS if not point.slow or parser.parse_args().slow]
    inside = 0
    print("| case | N | load | law | measured | 99 % interval | |\n|---|--:|--:|--:|--:|---|---|")
    for point in chosen:
        mean, half = point.interval(1)
        within = abs(mean - point.predicted) <= half
        inside += within
        row = f"{point.predicted:.5f} | {mean:.5f} | {mean - half:.5f} to {mean + half:.5f}"
        verdict = "" if within else "outside"
        print(f"| {point.name} | {point.N} | {point.load:g} | {row} | {verdict} |", flush=True)
    print(f"\n{inside} of {len(chosen)} inside")


if __name__ == "__main__":
    main()
