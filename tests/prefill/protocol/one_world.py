"""Drawn prefill runs twice over: in the compiled loop, and in the world of messages. They share the allocation rules.

    cd tests && python -m prefill.protocol.one_world 2000

What cannot be equal: a pool whose rule keeps requests, with a latency. The compiled loop looks at the queue also when a
batch reaches its instance, of which no message tells, and so counts one look more by which a request was kept.
"""

import argparse
import time

import numpy as np

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.messages import Messages

HELD = (
    "staggered",
    "staggered:window=5",
    "staggered:target=free",
    "staggered:window=3,target=free,ready=free",
    "staggered:ready=free",
    "staggered:interval=0.02",
    "staggered:timer=tick",
    "staggered:timer=tick,window=4,target=free",
    "staggered:window=4,idle_bypass=yes",
    "staggered:timer=tick,idle_bypass=yes,ready=free",
    "pooled",
    "pooled:ready=free",
)
BOUND = ("round-robin", "jsq", "jsq:by=tokens", "random")
PLACING = ("round-robin", "least-loaded", "longest-first")
CHOOSING = ("pbaa", "pbaa:whole=yes", "backfill", "backfill:split=0", "pbaa:n_limit=4")
#: Passes by the fullest unit, by fullest and mean, by longest too, and constant ones.
LAWS = (PassTime(), PassTime(0.05, 2e-5, 0, 8e-5), PassTime(0.03, 3e-5, 1e-5, 2e-5), PassTime(0.1, 0.0))
#: How far apart the two may be, s.
NEAR = 1e-9


def drawn(seed: int) -> tuple[PrefillRequests, PrefillSetting]:
    rng = np.random.default_rng([seed, 26])
    instances, units, latency = int(rng.integers(1, 6)), int(rng.integers(1, 9)), float(rng.choice([0.0, 0.001, 0.02]))
    bound = rng.random() < 0.3
    policy = str(rng.choice(BOUND if bound else HELD))
    rules = PLACING if bound or (policy.startswith("pooled") and latency) else PLACING + CHOOSING
    allocation, law = str(rng.choice(rules)), LAWS[int(rng.integers(len(LAWS)))]
    chunk, capacity = rng.choice([0, 500, 1500, 3072]), rng.choice([0, 0, 2, 5])
    engine = str(rng.choice(["work-conserving", "work-conserving", "back-to-back"]))
    setting = PrefillSetting(
        instances,
        units,
        policy,
        allocation,
        law,
        int(chunk) or None,
        int(capacity) or None,
        latency,
        engine,
        str(rng.choice(["random", "even", "free"])),
    )
    length = np.clip(np.rint(rng.lognormal(6.2, 0.9, int(rng.integers(20, 200)))), 1, 6000).astype(np.int64)
    full, mean = int(chunk) or 3000, 700
    if capacity:
        full = min(full, mean * int(capacity))
    most = instances * units * full / law.seconds(full, full, full) / mean
    return PrefillRequests.poisson(float(rng.choice([0.3, 0.6, 0.9, 1.2])) * most, length, seed=seed), setting


def differences(seed: int) -> list[str]:
    """What differs between the two runs of a case: columns of requests and of passes."""
    requests, setting = drawn(seed)
    compiled = simulate_prefill(requests, setting, seed=seed, keep_units=True)
    told = simulate_prefill(requests, setting, seed=seed, messages=Messages(latency_back=0.0, watchdog=1e9))
    served = compiled.served
    wrong = [] if (served == told.served).all() else ["served"]
    for name in ("dispatched", "began", "finished"):
        apart = np.abs(compiled.requests[name] - told.requests[name])[served]
        if not (apart < NEAR).all():
            wrong.append(name)
    whole = ("instance", "unit", "passes", "deferred")
    wrong += [n for n in whole if not np.array_equal(compiled.requests[n][served], told.requests[n][served])]
    if wrong:
        return wrong
    # Where nobody watches, empty passes stop with the last arrival; passes that start together are in either order.
    last = requests.arrival[-1]
    for name in ("start", "end", "tokens", "fullest", "longest", "requests"):
        columns = []
        for run in (compiled, told):
            rows = run.passes
            order = np.lexsort((rows["start"], rows["instance"]))
            columns.append(rows[name][order][((rows["tokens"] > 0) | (rows["start"] < last))[order]])
        if len(columns[0]) != len(columns[1]) or not (np.abs(columns[0] - columns[1]) < NEAR).all():
            wrong.append(f"passes: {name}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    began, apart = time.process_time(), 0
    for seed in range(given.first, given.first + given.count):
        if wrong := differences(seed):
            apart += 1
            print(seed, wrong, drawn(seed)[1].describe())
    print(f"{given.count:,} cases, {apart} differ by more than {NEAR:g} s; {time.process_time() - began:.0f} s CPU")


if __name__ == "__main__":
    main()
