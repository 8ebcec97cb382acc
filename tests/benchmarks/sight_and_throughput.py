"""Does old sight explain the throughput that BalanceRoute's tables print and lbopt does not find?

python -m tests.benchmarks.sight_and_throughput --shared SHARED

JSQ on arrival with reports of several ages against BR-0 as published, pooled, that sees the truth or the same reports
and counts what it sends. Fleets, requests, window and pricing are those of the reproduction: B = 72, Poisson at 0.95
or a closed loop, a balanced step of 60 ms, 100 ns a token above it. Gains in tokens a second and in running requests,
with 95 % intervals over five seeds.
"""

import argparse
from pathlib import Path

from lbopt.cli.console import ProgressBar
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes, simulate
from lbopt.statistics import over_seeds
from tools.studies.reproduction.cell import measured
from tools.studies.reproduction.drawn import draw

FILES = {"BurstGPT": "burstgpt_8000.json", "Azure conversation": "azure_llm_2023_conv.csv"}
SEEDS = 5
STEP, TOKEN = 0.06, 1e-7
JSQ, ROUTER = "jsq", "br-0:published"
#: Words, and what JSQ sees.
SIGHTS = {
    "the truth": None,
    "100 ms, counts its own": Telemetry(0.1),
    "100 ms, blind": Telemetry(0.1, own="none"),
    "1 s, blind": Telemetry(1.0, own="none"),
    "10 s, counts its own": Telemetry(10.0),
    "10 s, blind": Telemetry(10.0, own="none"),
}


def figures(trace, G, arrivals, rule, telemetry, seed):
    """Return tokens a second and running requests while requests appear."""
    setting = SimulationSetting(Fleet(G, 72), arrivals, step_time=AffineStepTime(STEP, 0.0), telemetry=telemetry)
    run = simulate(trace, make_policy(rule), setting, seed=seed, keep_loads=True)
    rows = measured(run).rows
    steps = {name: run.steps[name][rows].astype(float) for name in ("active", "barrier_max", "barrier_sum")}
    active = steps["active"].mean()
    return active / (STEP + TOKEN * (steps["barrier_max"].mean() - steps["barrier_sum"].mean() / G)), active


def gain(of, over):
    """Return the mean gain in percent and its interval, of pairs of a seed."""
    found = over_seeds([100 * (a / b - 1) for a, b in zip(of, over, strict=True)])
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def main():
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    given = parser.parse_args()
    kinds = {"Poisson, load 0.95": TraceTimes(0.95), "closed loop": ClosedLoop()}
    lines = []
    with ProgressBar() as bar:
        bar.begin("runs", len(FILES) * 3 * len(kinds) * SEEDS)
        for trace_name, file in FILES.items():
            for G in (4, 16, 64):
                for how, arrivals in kinds.items():
                    by_sight = {name: [] for name in SIGHTS}
                    by_router = {name: [] for name in SIGHTS}
                    for seed in range(SEEDS):
                        requests = {"trace": str(given.shared / "data" / file), "longer_than": 0}
                        trace = draw(requests, 1500 * G, seed)
                        for name, sight in SIGHTS.items():
                            counts = None if sight is None else Telemetry(sight.period)
                            by_sight[name].append(figures(trace, G, arrivals, JSQ, sight, seed))
                            by_router[name].append(figures(trace, G, arrivals, ROUTER, counts, seed))
                        bar.advance()
                    for name in SIGHTS:
                        truth, old, blind = by_router["the truth"], by_router[name], by_sight[name]
                        pairs = [(one, k) for one in (truth, old) for k in (0, 1)]
                        cells = [gain([x[k] for x in one], [x[k] for x in blind]) for one, k in pairs]
                        lines.append(f"| {trace_name} | {G} | {how} | {name} | " + " | ".join(cells) + " |")
    print("| requests | G | arrivals | JSQ sees | BR-0 with the truth, tokens/s | running ", end="")
    print("| BR-0 with reports of the same age, tokens/s | running |")
    print("|---|--:|---|---|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
