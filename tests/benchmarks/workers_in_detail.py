"""What is left of a rule where memory runs out, a worker is slow or restarts, prompts take time, tokens are drafted.

python -m tests.benchmarks.workers_in_detail --shared SHARED --out OUT

Each rule on Azure's conversations with their own arrivals, B = 72 and the step time of the BF-IO experiments, with the
truth in sight. Prints markdown tables and writes all figures as JSON.
"""

import argparse
import json
from pathlib import Path

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, TraceTimes, make_detail, simulate
from lbopt.simulator.recorder import detail_figures
from lbopt.whole_file import write_file

TRACE = "azure_llm_2023_conv.csv"
RULES = (
    *("round-robin", "jsq", "jsq-load:admission=immediate", "vllm", "sglang", "dynamo", "llm-d", "lmdeploy"),
    *("tensorrt-llm", "max-min", "br-0", "br-0:stage_switch=0"),
)
#: Words, detail, tokens of a worker's memory.
CASES = {
    "none of it": ("", None),
    "memory of 80,000 tokens": ("preempt=recompute,prefill_cost=20us", 80_000),
    "the same, swapped": ("preempt=swap,swap_cost=1us", 80_000),
    "one worker needs 1.3 times as long": ("slow=8:1.3", None),
    "one worker restarts": ("leave=8@5s,join=8@10s,prefill_cost=20us", None),
    "prompts in pieces of 2048": ("prefill=2048,prefill_cost=2us", None),
    "three drafted tokens": ("draft=3,acceptance=0.6,spread=0.3,draft_cost=1ms", None),
}
COLUMNS = {
    "tpot_mean_seconds": ("time a token, mean, ms", 1e3, 2),
    "tpot_p99_seconds": ("time a token, P99, ms", 1e3, 1),
    "first_token_p99_seconds": ("first token, P99, ms", 1e3, 0),
    "imbalance_tokens": ("mean imbalance at the barrier, thousand tokens", 1e-3, 0),
    "preemptions": ("pre-emptions", 1, 0),
    "recomputed_tokens": ("tokens computed once more, thousands", 1e-3, 0),
}


def measured(trace, G, load, detail, capacity, rule):
    """Return the figures of one run."""
    chosen = make_detail(detail)
    setting = SimulationSetting(Fleet(G, 72, capacity), TraceTimes(load), event_order="theory", detail=chosen)
    run = simulate(trace, make_policy(rule), setting)
    metrics, figures = run.metrics(), detail_figures(run)
    return {name: figures[name] if name in figures else getattr(metrics, name) for name in (*COLUMNS, "occupancy")}


def main():
    """Run all cases and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="name of the JSON file")
    parser.add_argument("--load", type=float, default=0.8, help="share of saturation")
    given = parser.parse_args()
    trace, found = read_trace(given.shared / "data" / TRACE), []
    with ProgressBar() as bar:
        bar.begin("runs", 2 * len(CASES) * len(RULES))
        for G in (16, 64):
            for rule in RULES:
                row = {}
                for case, (detail, capacity) in CASES.items():
                    row[case] = measured(trace, G, given.load, detail, capacity, rule)
                    bar.advance()
                found.append({"workers": G, "rule": rule, "cases": row})
                write_file(given.out, json.dumps(found, indent=1))
    for column, (words, unit, digits) in COLUMNS.items():
        for G in (16, 64):
            print(f"\n{G} workers: {words}\n\n| rule |", " | ".join(CASES), "|")
            print("|---|" + "--:|" * len(CASES))
            for row in (row for row in found if row["workers"] == G):
                figures = (f"{row['cases'][case][column] * unit:,.{digits}f}" for case in CASES)
                print(f"| `{row['rule']}` |", " | ".join(figures), "|")


if __name__ == "__main__":
    main()
