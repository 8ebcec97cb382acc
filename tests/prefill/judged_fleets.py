"""Sending ahead with predictions 10 % off against round-robin and jsq, on the fleets that no choice was made on.

``cd tests && python -m prefill.judged_fleets`` prints a line for each fleet, latency and load: the change of the mean
time to first token against the better baseline, seed by seed, in how many seeds it is larger, that of the best
staggered rule without a latency, and the mean wait on the device under the three rules. ``--seeds 2`` takes a minute.
The first tenth of the prompts is dropped.
"""

import argparse

import numpy as np

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.studies.staggered.places import JUDGED, LATENCIES, LOADS, RULES, UNITS, most_rate, prompts

BASELINES, REFERENCE = ("round-robin", "jsq"), ("staggered", "staggered-free", "staggered-whole")
#: Prompts of an instance in a run.
PROMPTS = {"chat-2k": 2500, "mixed-8k": 2000, "fleet-4k": 1500}


def measured(name, load, latency, rule, seed):
    """Mean time to first token and mean wait on the device of one run, seconds."""
    fleet = JUDGED[name]
    lengths = prompts(fleet.place, PROMPTS[name] * fleet.instances, seed, fleet.spread)
    rate = load * most_rate(fleet.place, fleet.pass_time) * fleet.instances
    policy, allocation = RULES[rule]
    setting = PrefillSetting(
        fleet.instances, UNITS, policy, allocation, fleet.pass_time, fleet.place.chunk, latency=latency
    )
    whole = PrefillRequests.poisson(1.0, lengths, seed=seed)
    run = simulate_prefill(PrefillRequests(whole.arrival / rate, whole.length), setting, seed=seed)
    counted = slice(len(lengths) // 10, None)
    return run.first_token[counted].mean(), run.wait_on_device[counted].mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    for name in JUDGED:
        for load in LOADS:
            without = [min(measured(name, load, 0.0, rule, seed)[0] for rule in REFERENCE) for seed in seeds]
            for latency in LATENCIES[1:]:
                runs = np.array(
                    [[measured(name, load, latency, rule, seed) for rule in (*BASELINES, "ahead-10")] for seed in seeds]
                )
                first, device = runs[..., 0], 1e3 * runs[..., 1].mean(axis=0)
                better = first[:, : len(BASELINES)].min(axis=1)
                change, bound = (100 * (np.divide(times, better) - 1) for times in (first[:, -1], without))
                half = 1.96 * change.std(ddof=1) / np.sqrt(change.size)
                print(
                    f"{name} {1e3 * latency:.0f} ms {load:.0%}: {change.mean():+.1f} ± {half:.1f} %, worst seed "
                    f"{change.max():+.1f} %, above in {(change > 0).sum()}; without a latency {bound.mean():+.1f} %; "
                    f"on the device {device[0]:.0f} / {device[1]:.0f} / {device[2]:.0f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
