"""What going by caches of prefixes brings and costs where all workers wait for the slowest.

python -m tests.benchmarks.prefix_caches --shared SHARED --out OUT

Mooncake's conversations with their own hashes and arrivals, workers that compute prompts in pieces, B = 72, the step
time of the BF-IO experiments, the truth in sight; five rotations of the trace, 95 % intervals over them.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, TraceTimes, make_detail, simulate
from lbopt.simulator.recorder import detail_figures
from lbopt.statistics import over_seeds
from lbopt.whole_file import write_file

RULES = (
    *("round-robin", "jsq", "sglang", "tpu-inference:cache=no", "tpu-inference", "dynamo:cache=no", "dynamo"),
    *("max-min", "auto"),
)
CACHES = {"no cache": 0, "200,000 tokens": 200_000, "2,000,000 tokens": 2_000_000}
FLEETS = (8, 32)
ROTATIONS = 5
COLUMNS = {
    "found": ("share of prompt tokens found, %", 100, 1),
    "first_token_mean_seconds": ("first token, mean, ms", 1e3, 0),
    "first_token_p99_seconds": ("first token, P99, ms", 1e3, 0),
    "tpot_mean_seconds": ("time a token, mean, ms", 1e3, 2),
    "tpot_p99_seconds": ("time a token, P99, ms", 1e3, 1),
    "idle_share": ("idle at the barrier, %", 100, 1),
    "whole_run_tokens_per_second": ("tokens a second of the whole run", 1, 0),
}


def rotated(trace: Trace, draw: int) -> Trace:
    """Return the trace begun at another fifth of it, with its gaps."""
    rows = np.roll(np.arange(len(trace)), -draw * len(trace) // ROTATIONS)
    gaps = np.diff(trace.arrival, append=trace.arrival[-1] * len(trace) / (len(trace) - 1))
    return Trace(
        prompt=trace.prompt[rows],
        output=trace.output[rows],
        arrival=np.round(np.cumsum(gaps[rows]), 6),
        name=trace.name,
        prefixes=trace.prefixes.of_requests(rows),
    )


def measured(trace: Trace, G: int, load: float, rule: str, cache: int) -> dict[str, float]:
    """Return the figures of one run."""
    detail = make_detail(f"prefill=2048,prefill_cost=10us,prefix_cache={cache}")
    setting = SimulationSetting(Fleet(G, 72), TraceTimes(load), event_order="theory", detail=detail)
    run = simulate(trace, make_policy(rule), setting)
    metrics, figures = run.metrics(), detail_figures(run)
    row = {name: float(getattr(metrics, name)) for name in COLUMNS if name != "found"}
    return row | {"found": figures["reused_tokens"] / float(trace.prompt.sum())}


def main() -> None:
    """Run all and print a table for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="name of the JSON file")
    parser.add_argument("--load", type=float, default=0.5, help="share of saturation without prompts")
    given = parser.parse_args()
    whole, found = read_trace(given.shared / "data" / "mooncake_conversation.jsonl"), {}
    draws = [rotated(whole, draw) for draw in range(ROTATIONS)]
    with ProgressBar() as bar:
        bar.begin("runs", len(FLEETS) * len(RULES) * len(CACHES))
        for G in FLEETS:
            for rule in RULES:
                for words, cache in CACHES.items():
                    rows = [measured(draw, G, given.load, rule, cache) for draw in draws]
                    found[f"{G} | {rule} | {words}"] = {name: [row[name] for row in rows] for name in COLUMNS}
                    write_file(given.out, json.dumps(found, indent=1))
                    bar.advance()
    for name, (words, unit, digits) in COLUMNS.items():
        print(f"\n{words}\n\n| G | rule |", " | ".join(CACHES), "|\n|--:|---|" + "---|" * len(CACHES))
        for G in FLEETS:
            for rule in RULES:
                cells = []
                for cache in CACHES:
                    spread = over_seeds([unit * value for value in found[f"{G} | {rule} | {cache}"][name]])
                    cells.append(f"{spread.mean:,.{digits}f} ± {spread.high - spread.mean:,.{digits}f}")
                print(f"| {G} | `{rule}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
