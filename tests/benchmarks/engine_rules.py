"""What a decision of each rule of a serving engine costs: `python -m tests.benchmarks.engine_rules`.

CPU time of a run over its requests, steps included, and the same less that of round-robin, which looks at nothing.
First where rules see the truth, then four front ends with reports every 100 ms (rules of a pool have one front end).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, simulate

RULES = (
    *("round-robin", "jsq", "jsq-load:admission=immediate", "vllm:version=2025", "vllm", "sglang", "tpu-inference"),
    *("smg", "dynamo", "llm-d", "lmdeploy", "lightllm", "vllm-ascend", "max-min", "tensorrt-llm"),
)


def microseconds(spec: str, trace: Trace, workers: int, telemetry: Telemetry | None, repeats: int) -> float:
    """Return the CPU time of a run over its requests, best of `repeats` warm ones."""
    policy = make_policy(spec)
    if telemetry is not None and policy.admission == "pooled":
        telemetry = Telemetry(telemetry.period)
    setting = SimulationSetting(Fleet(workers, 72, 100_000), ClosedLoop(), telemetry=telemetry)
    best = np.inf
    for _ in range(repeats + 1):
        begin = time.process_time()
        simulate(trace, policy, setting)
        best = min(best, time.process_time() - begin)
    return 1e6 * float(best) / len(trace)


def main() -> None:
    """Print one row a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    rng = np.random.default_rng(5)
    trace = Trace(prompt=rng.integers(1, 2000, asked.requests), output=rng.integers(1, 400, asked.requests))
    floor: dict[str, float] = {}
    for spec in RULES:
        row = []
        for name, telemetry in (("truth", None), ("reports", Telemetry(0.1, front_ends=4))):
            spent = microseconds(spec, trace, asked.workers, telemetry, asked.repeats)
            floor.setdefault(name, spent)
            row += [f"{spent:.2f}", f"{spent - floor[name]:.2f}"]
        print(f"| `{spec}` | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
