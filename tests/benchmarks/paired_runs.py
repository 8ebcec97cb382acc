"""Compare this checkout with an earlier one: CPU time of simulations by every policy, and of prefill by every rule.

python tests/benchmarks/paired_runs.py --before ../earlier
python tests/benchmarks/paired_runs.py --before ../earlier --cold 2

Two processes, one for each checkout, carry out the same runs by turns. Of each run the least CPU time of all rounds
counts, which another program on the same machine disturbs least.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parents[2]
DECODE = ("fcfs", "round-robin", "random", "power-of-two", "jsq", "jsq-load", "vllm", "max-min", "iqr", "br-0")
OTHERS = ("br-0-bypass", "iqr:admission=immediate", "br-h:horizon=20", "fast-phi")
PREFILL = (
    "random least-loaded",
    "jsq round-robin",
    "jsq:by=tokens least-loaded",
    "pooled least-loaded",
    "pooled longest-first",
    "pooled pbaa",
    "staggered least-loaded",
    "staggered:timer=tick pbaa",
    "staggered:idle_bypass=yes,window=5 longest-first",
)
COLD = (
    "from lbopt.instances import generate; from lbopt.model import Fleet; from lbopt.policies import make_policy; "
    "from lbopt.simulator import SimulationSetting, simulate; "
    "simulate(generate('burstgpt-like', 200, 3), make_policy('fcfs'), SimulationSetting(Fleet(4, 8)))"
)


def decode_run(spec: str) -> Callable[[], object]:
    """Return a run of 20,000 requests, or 2,000 where the policy looks ahead, on 16 workers of 72 slots."""
    from lbopt.instances import generate
    from lbopt.model import Fleet
    from lbopt.policies import make_policy
    from lbopt.simulator import SimulationSetting, simulate

    looks_ahead = spec.startswith(("br-h", "fast-phi"))
    trace, policy = generate("burstgpt-like", 2_000 if looks_ahead else 20_000, 3), make_policy(spec)
    training = trace if looks_ahead else None
    return lambda: simulate(trace, policy, SimulationSetting(Fleet(16, 72)), seed=1, training=training)


def prefill_run(spec: str) -> Callable[[], object]:
    """Return a run of 20,000 prompts on 4 instances of 8 units."""
    from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill

    policy, allocation = spec.split()
    rng = np.random.default_rng(2)
    requests = PrefillRequests(np.cumsum(rng.exponential(0.006, 20_000)), rng.integers(1, 4000, 20_000))
    setting = PrefillSetting(4, 8, policy, allocation, PassTime(0.05, 1e-4), 8000)
    return lambda: simulate_prefill(requests, setting, seed=1)


def answer() -> None:
    """Carry out the run that each line of the input names, and write its CPU seconds."""
    runs: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        spec = line.strip()
        if spec not in runs:
            runs[spec] = prefill_run(spec) if " " in spec else decode_run(spec)
        begin = time.process_time()
        runs[spec]()
        print(time.process_time() - begin, flush=True)


def environment(tree: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process that imports lbopt from `tree`."""
    return {**os.environ, "PYTHONPATH": str(tree), **more}


def cold_seconds(tree: Path) -> float:
    """Return the CPU seconds of a first simulation, with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as cache:
        before = os.times()
        subprocess.run([sys.executable, "-c", COLD], env=environment(tree, LBOPT_CACHE=cache), cwd=tree, check=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def compare(before: Path, rounds: int) -> None:
    """Print a row for each run, and the median of the ratios."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--answer"],
            env=environment(tree),
            cwd=tree,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for tree in (before, HERE)
    ]

    def ask(which: int, spec: str) -> float:
        inlet, outlet = processes[which].stdin, processes[which].stdout
        assert inlet is not None and outlet is not None
        print(spec, file=inlet, flush=True)
        return float(outlet.readline())

    ratios = []
    print("| run | before, ms | after, ms | ratio |\n|---|--:|--:|--:|")
    for spec in (*DECODE, *OTHERS, *PREFILL):
        _ = ask(0, spec), ask(1, spec)  # compiled, or loaded
        times = [(ask(0, spec), ask(1, spec)) for _ in range(rounds)]
        old, new = (1e3 * min(column) for column in zip(*times, strict=True))
        ratios.append(new / old)
        print(f"| {spec} | {old:.2f} | {new:.2f} | {new / old:.2f} |", flush=True)
    print(f"\nmedian of the ratios {median(ratios):.2f}, largest {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="an earlier checkout")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold", type=int, default=0, help="so many first runs with an empty cache, instead")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer()
    elif given.cold:
        for _ in range(given.cold):
            old, new = (cold_seconds(tree) for tree in (given.before.resolve(), HERE))
            print(f"first simulation: {old:.1f} s before, {new:.1f} s after")
    else:
        compare(given.before.resolve(), given.rounds)


if __name__ == "__main__":
    main()
