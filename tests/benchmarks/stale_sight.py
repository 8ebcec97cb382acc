"""How much of a rule is left when what it sees is old.

python -m tests.benchmarks.stale_sight --shared SHARED --out OUT
python -m tests.benchmarks.stale_sight --shared SHARED --out OUT --engines --trace azure --kv-capacity 100000

Each rule on two real traces with their own arrivals at 90 % of saturation, for reports that come with every step to
every ten seconds, with and without the requests that a front end sent itself, and for four front ends. The step time is
that of the BF-IO experiments. Prints markdown tables of the imbalance and of the time a token (P99), whole traces, and
writes all metrics as JSON.
"""

import argparse
import json
from pathlib import Path

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, Telemetry, TraceTimes, simulate
from lbopt.whole_file import write_file

TRACES = {"Azure conversation 2023": "azure_llm_2023_conv.csv", "Mooncake conversation": "mooncake_conversation.jsonl"}
LOAD = 0.9
PERIODS = {"truth": None, "20 ms": 0.02, "100 ms": 0.1, "1 s": 1.0, "10 s": 10.0}
FLEETS = ((16, 72), (64, 72))

#: Rules that bind on arrival, by the sight of their front ends; pooled ones count what they send, and have one router.
IMMEDIATE = ("round-robin", "jsq", "vllm:version=2025", "jsq-load:admission=immediate", "br-0-bypass")
POOLED = ("jsq-load", "max-min", "br-0", "bf-io:effort=20000,time_limit=none")
#: The rules of serving engines, and one to compare with.
ENGINES = (
    *("round-robin", "jsq-load:admission=immediate", "vllm:version=2025", "vllm", "sglang", "tpu-inference", "smg"),
    *("dynamo", "llm-d", "lmdeploy", "lightllm", "vllm-ascend"),
)
POOLED_ENGINES = ("tensorrt-llm", "max-min")
SIGHTS = {
    "counts its own": {"own": "optimistic"},
    "blind between reports": {"own": "none"},
    "four front ends": {"own": "optimistic", "front_ends": 4},
}
COLUMNS = {
    "imbalance_tokens": ("mean imbalance, thousand tokens", 1e-3, 0),
    "tpot_p99_seconds": ("time a token, P99, ms", 1e3, 1),
    "first_token_p99_seconds": ("first token, P99, ms", 1e3, 0),
}


def cases(traces, fleets, immediate, pooled):
    """Return (trace, G, B, sight, rule) of every row."""
    return [
        (trace, G, B, sight, rule)
        for trace in traces
        for G, B in fleets
        for sight in SIGHTS
        for rule in (immediate + pooled if sight == "counts its own" else immediate)
    ]


def measured(trace, G, B, sight, rule, period, kv_capacity=None):
    """Return the metrics of one run."""
    telemetry = None if period is None else Telemetry(period, **SIGHTS[sight])
    setting = SimulationSetting(Fleet(G, B, kv_capacity), TraceTimes(LOAD), telemetry=telemetry)
    metrics = simulate(trace, make_policy(rule), setting).metrics()
    return {name: getattr(metrics, name) for name in (*COLUMNS, "occupancy", "whole_run_tokens_per_second")}


def main():
    """Run all cases and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="name of the JSON file")
    parser.add_argument("--workers", type=int, action="append", help="fleets of so many workers alone")
    parser.add_argument("--engines", action="store_true", help="the rules of serving engines instead")
    parser.add_argument("--trace", default="", help="traces alone whose file begins so")
    parser.add_argument("--kv-capacity", type=int, help="tokens that a worker can hold")
    given = parser.parse_args()
    named = {name: file for name, file in TRACES.items() if file.startswith(given.trace)}
    traces = {name: read_trace(given.shared / "data" / file) for name, file in named.items()}
    fleets = [fleet for fleet in FLEETS if given.workers is None or fleet[0] in given.workers]
    rules = (ENGINES, POOLED_ENGINES) if given.engines else (IMMEDIATE, POOLED)
    todo, found = cases(traces, fleets, *rules), []
    with ProgressBar() as bar:
        bar.begin("runs", len(todo) * len(PERIODS))
        for trace, G, B, sight, rule in todo:
            row = {}
            for name, period in PERIODS.items():
                row[name] = measured(traces[trace], G, B, sight, rule, period, given.kv_capacity)
                bar.advance()
            found.append({"trace": trace, "workers": G, "slots": B, "sight": sight, "rule": rule, "periods": row})
            write_file(given.out, json.dumps(found, indent=1))
    for column, (words, unit, digits) in COLUMNS.items():
        for trace, G, B in dict.fromkeys((row["trace"], row["workers"], row["slots"]) for row in found):
            mine = [row for row in found if (row["trace"], row["workers"]) == (trace, G)]
            print(f"\n{trace}, G = {G}, B = {B}: {words}\n\n| rule | sight |", " | ".join(PERIODS), "|")
            print("|---|---|" + "--:|" * len(PERIODS))
            for row in mine:
                figures = (f"{row['periods'][p][column] * unit:,.{digits}f}" for p in PERIODS)
                print(f"| `{row['rule']}` | {row['sight']} |", " | ".join(figures), "|")


if __name__ == "__main__":
    main()
