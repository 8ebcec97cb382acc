"""Does looking ahead by fast-phi route better? Its variants over a BurstGPT run, 16 workers of 72 slots.

python -m tests.benchmarks.fast_phi_runs --shared ../shared --out fast-phi-runs

Every second request of the sample is learned from; the others, drawn with replacement, arrive at 0.9 of saturation.
Writes OUT.json and OUT.md.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, TraceTimes, simulate
from lbopt.whole_file import write_file
from tests.benchmarks.quadrature_states import requests_of_trace

POLICIES = (
    "jsq",
    "jsq-load:admission=immediate",
    "fast-phi:nodes=1",
    "fast-phi",
    "fast-phi:percentile=95",
    "fast-phi:rule=product",
    "fast-phi:nodes=20,rule=product",
    "fast-phi:nodes=all",
    "fast-phi:nodes=all,longest=mean",
    "fast-phi:nodes=all,longest=20",
    "fast-phi:nodes=20,rule=product,predictor=oracle",
)


def measure(shared: Path, policy: str, seed: int, count: int) -> dict[str, Any]:
    """Return what one run comes to."""
    learn, runs = requests_of_trace(shared)
    drawn = runs.resampled(count, seed)
    arrival = np.random.default_rng(seed).exponential(size=count).cumsum()
    trace = Trace(prompt=drawn.prompt, output=drawn.output, arrival=arrival, name=drawn.name)
    run = simulate(trace, make_policy(policy), SimulationSetting(Fleet(16, 72), TraceTimes(0.9)), training=learn)
    metrics = run.metrics()
    return {
        "policy": policy,
        "seed": seed,
        "imbalance": metrics.imbalance_tokens,
        "seconds_per_request": run.seconds / count,
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, default=Path("fast-phi-runs"), help="files begin with this")
    parser.add_argument("--count", type=int, default=12_000, help="requests a run")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows = []
    with ProgressBar() as bar:
        bar.begin("runs", len(POLICIES) * options.seeds)
        for policy in POLICIES:
            for seed in range(options.seeds):
                rows.append(measure(options.shared, policy, seed, options.count))
                bar.advance()
    lines = ["| policy | mean imbalance (tokens), one per seed |", "|---|---|"]
    for policy in POLICIES:
        values = [row["imbalance"] for row in rows if row["policy"] == policy]
        lines.append(f"| `{policy}` | " + ", ".join(f"{value:,.0f}" for value in values) + " |")
    text = "\n".join(lines) + "\n"
    print(text)
    write_file(options.out.with_name(options.out.name + ".json"), json.dumps(rows, indent=2) + "\n")
    write_file(options.out.with_name(options.out.name + ".md"), text)


if __name__ == "__main__":
    main()
