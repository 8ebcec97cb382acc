"""Sending ahead against round-robin and jsq with messages and faults, on the fleets that no choice was made on.

``cd tests && python -m prefill.judged_messages --seeds 5 --out rows.jsonl`` writes a line for each run, seed by seed,
and goes on where it was stopped; ``--show`` prints the table of what is there. The latency is the same both ways. A
run has `PROMPTS` of an instance; the first tenth is dropped.

With faults: one end of a pass in ten is lost, one pass in twenty takes twice as long, and instance 0 stops for 10 s at
two fifths of the time, which is noticed after 1 s.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.messages import Messages
from lbopt.prefill.protocol.faults import FaultPlan, Outage
from lbopt.studies.staggered.places import JUDGED, RULES, UNITS, most_rate, prompts

PROMPTS = 800
CONTENDERS = ("ahead", "round-robin", "jsq")
LOADS, LATENCIES, FAULTS = (0.7, 0.9), (0.005, 0.02), (False, True)


def measure(name, load, latency, faults, rule, seed):
    """One run as a row."""
    fleet = JUDGED[name]
    lengths = prompts(fleet.place, PROMPTS * fleet.instances, seed, fleet.spread)
    rate = load * most_rate(fleet.place, fleet.pass_time) * fleet.instances
    policy, allocation = RULES[rule]
    setting = PrefillSetting(
        fleet.instances, UNITS, policy, allocation, fleet.pass_time, fleet.place.chunk, latency=latency
    )
    whole = PrefillRequests.poisson(1.0, lengths, seed=seed)
    requests = PrefillRequests(whole.arrival / rate, whole.length)
    at = 0.4 * requests.arrival[-1]
    plan = FaultPlan()
    if faults:
        plan = FaultPlan(lose=0.1, slow=0.05, slow_factor=2.0, crashes=(Outage(0, at, at + 10.0),), detection=1.0)
    began = time.process_time()
    messages = Messages(watchdog=5.0, polls=1.0, pace="median")
    run = simulate_prefill(requests, setting, seed=seed, faults=plan, messages=messages)
    # With messages the first token is that which the scheduler hears.
    times = run.first_token[len(lengths) // 10 :]
    return {
        "case": [name, load, latency, faults, rule, seed],
        "mean": float(np.nanmean(times)),
        "p99": float(np.nanpercentile(times, 99)),
        "stranded": int(run.stranded.size),
        "twice": run.computed_twice,
        "alarms": run.outcome.state.faults,
        "cpu": time.process_time() - began,
    }


def show(rows):
    """A line for each fleet, load, latency and world: means over seeds, and the change against the better baseline."""
    by = defaultdict(dict)
    for row in rows:
        name, load, latency, faults, rule, seed = row["case"]
        by[name, load, latency, faults, rule][seed] = row
    for name, load, latency, faults in product(JUDGED, LOADS, LATENCIES, FAULTS):
        runs = [by[name, load, latency, faults, rule] for rule in CONTENDERS]
        seeds = sorted(set.intersection(*(set(one) for one in runs)))
        if not seeds:
            continue
        means = np.array([[one[seed]["mean"] for seed in seeds] for one in runs])
        change = 100 * (means[0] / means[1:].min(axis=0) - 1)
        p99 = [np.mean([one[seed]["p99"] for seed in seeds]) for one in runs]
        lost = [sum(one[seed]["stranded"] for seed in seeds) for one in runs]
        alarms = np.mean([runs[0][seed]["alarms"] for seed in seeds])
        print(
            f"| {name} | {load:.0%} | {1e3 * latency:.0f} | {'yes' if faults else 'no'} | "
            + " | ".join(f"{mean:.3f}" for mean in means.mean(axis=1))
            + f" | {change.mean():+.1f} ({change.max():+.1f}) | {' / '.join(f'{one:.2f}' for one in p99)} | {lost} "
            f"| {alarms:.1f} | {len(seeds)} |"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if not given.show:
        done = {tuple(row["case"]) for row in rows}
        for seed, case in product(range(given.seeds), product(JUDGED, LOADS, LATENCIES, FAULTS, CONTENDERS)):
            if (*case, seed) not in done:
                rows.append(measure(*case, seed))
                with given.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
