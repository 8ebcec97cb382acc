"""How fast prefill passes are simulated: requests a second on one core.

python -m tests.benchmarks.prefill_speed

Counted is a whole `simulate_prefill`: arrays, the compiled loop, and the columns of requests and passes; the metrics
and the first compilation are not. Arrivals are drawn before. The shortest of several warm runs counts. Prompts are of
one token, since what a run costs is its moments: one for each arrival, one for each end of a pass.
"""

import argparse

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from tests.benchmarks.measure import shortest

#: What is asked for, in requests a second: the floor, for policies without caches.
FLOOR = 2e6
INSTANCES, REQUESTS = 10, 500_000
POLICIES = ("random", "round-robin", "jsq", "pooled", "staggered", "staggered:timer=tick", "staggered:window=16")
LOADS = (0.5, 2.0, 8.0)


def requests_a_second(policy, load, units=1, N=INSTANCES, count=REQUESTS, repeats=5):
    """Return the speed at `load` requests per instance and pass."""
    requests = PrefillRequests.poisson(N * load, 1, 1, count)
    setting = PrefillSetting(N, units, policy, pass_time=PassTime.constant(1.0))
    return count / shortest(lambda: simulate_prefill(requests, setting, seed=1), repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1)
    units = parser.parse_args().units
    print(f"floor: {FLOOR:.2g} requests a second; N = {INSTANCES}, {units} units each\n")
    print("| policy | " + " | ".join(f"load {load:g}" for load in LOADS) + " |")
    print("|---|" + "--:|" * len(LOADS))
    for policy in POLICIES:
        speeds = [requests_a_second(policy, load, units) for load in LOADS]
        print(f"| {policy} | " + " | ".join(f"{speed:.3g}" for speed in speeds) + " |", flush=True)


if __name__ == "__main__":
    main()
