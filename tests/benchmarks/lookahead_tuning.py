"""Tune BR-H on a draw of its own, by random search.

python -m tests.benchmarks.lookahead_tuning --shared ../shared --predictor oracle --horizon 10 --minutes 5 --out tuning

Draws 43 and up of the sample behind Table 1 of the BF-IO paper, never draw 42, on which the table is made; survival
forecasts learn from another draw again. Every try is a line of OUT.jsonl, so that a stopped search is not lost, and a
further call goes on with other tries. Prints the best by mean imbalance.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate

SETTING = SimulationSetting(Fleet(16, 72))


def tried(rng, predictor, horizon):
    """Return the text of a random BR-H."""
    options = {
        "horizon": horizon,
        "predictor": predictor,
        "beta": round(10 ** rng.uniform(1, 3), 1),
        "gamma": round(rng.uniform(0.3, 1), 3),
        "stage_switch": rng.choice([0, 0, 0, 1, 3, 7]),
        "growth": rng.choice([0, 1]),
    }
    if predictor == "oracle":
        options["update"] = rng.choice(["constant", "constant", "profile"])
    else:
        options["departures"] = rng.choice(["cut", "weighted", "weighted"])
    return "br-h:" + ",".join(f"{name}={value}" for name, value in options.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--predictor", default="oracle")
    parser.add_argument("--horizon", type=int, required=True)
    parser.add_argument("--draws", type=int, nargs="+", default=[43])
    parser.add_argument("--count", type=int, default=100_000, help="requests")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--out", type=Path, default=Path("tuning"), help="OUT.jsonl is added to")
    options = parser.parse_args()
    if 42 in options.draws:
        parser.error("draw 42 is the one that results are reported on; tune on others")
    trace = read_trace(options.shared / "data" / "burstgpt_8000.json")
    pairs = [
        (trace.resampled(options.count, draw), trace.resampled(20_000, draw + 1_000_003)) for draw in options.draws
    ]
    log = options.out.with_name(options.out.name + ".jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    rng = random.Random(f"{options.predictor} {options.horizon} {len(lines)}")
    end = time.monotonic() + 60 * options.minutes
    try:
        with ProgressBar() as bar, log.open("a") as file:
            bar.begin("tries, seconds", int(60 * options.minutes))
            while time.monotonic() < end:
                begun = time.monotonic()
                spec = tried(rng, options.predictor, options.horizon)
                found = [simulate(r, make_policy(spec), SETTING, training=t).metrics() for r, t in pairs]
                line = {
                    "policy": spec,
                    "imbalance": float(np.mean([m.imbalance_tokens for m in found])),
                    "throughput": float(np.mean([m.throughput_tokens_per_second for m in found])),
                    "longest_wait": max(m.waiting_max_steps for m in found),
                }
                lines.append(line)
                file.write(json.dumps(line) + "\n")
                file.flush()
                bar.advance(round(time.monotonic() - begun))
    except KeyboardInterrupt:
        print("interrupted: every finished try is kept")
    of_this = [x for x in lines if f"horizon={options.horizon},predictor={options.predictor}" in x["policy"]]
    for line in sorted(of_this, key=lambda x: x["imbalance"])[:10]:
        print(
            f"{line['imbalance']:10,.0f} tokens"
            f" {line['throughput']:10,.0f} tok/s {line['longest_wait']:6,} {line['policy']}"
        )


if __name__ == "__main__":
    main()
