"""How long a scheduling round that looks ahead takes, and how it grows with workers, horizon and pool.

python -m tests.benchmarks.lookahead_speed --out lookahead-speed

A round is `decide` on what the router sees: projection of all running requests, envelope, margins, both stages. The
forecasts are there already; refreshing them is measured by itself. Rounds are those of a BR-H run on the requests of
the BF-IO paper's Table 1, each taken warm and alone. Writes OUT.json, OUT.md and OUT.png.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.predictors import Forecaster, Foresight, make_predictor
from lbopt.report.figures import line_style, new_figure
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.whole_file import write_file
from tests.benchmarks.measure import table_1_requests

SLOTS, ROUNDS = 72, 400
WORKERS, HORIZONS, POOLS = (4, 8, 16, 32, 64, 144), (0, 10, 20, 40, 80, 160), (16, 32, 64, 128, 256, 512, 1024)
#: What is asked for: workers, horizon, pool (None = 4 G), most microseconds of P50 and P99 (None = not asked).
TARGETS = ((8, 80, None, 60, 250), (144, 80, 512, 1000, None))


class Listening:
    """A policy that keeps what it was shown in the saturated phase."""

    def __init__(self, policy, after):
        self.policy, self.after, self.seen = policy, after, []
        self.name, self.admission, self.foresight = policy.name, policy.admission, policy.foresight

    def decide(self, observation):
        if observation.step >= self.after and observation.sizes.size:
            self.seen.append(observation)
        return self.policy.decide(observation)


def even_trace(workers, count):
    """Prompts of Table 1; outputs with its mean of 57 but never so long that a worker empties for good."""
    rng = np.random.default_rng(7)
    requests = table_1_requests()
    rows = rng.integers(0, len(requests), count)
    return Trace(prompt=requests.prompt[rows], output=requests.output[rows], name="table-1")


def rounds(spec, workers, pool=None, count=ROUNDS):
    """Return observations of a run of `spec` once the fleet is full."""
    policy = Listening(make_policy(spec), 60)
    trace = even_trace(workers, workers * SLOTS + (pool or 4 * workers) + workers * (60 + count) * 2)
    setting = SimulationSetting(Fleet(workers, SLOTS), ClosedLoop(pool))
    simulate(trace, policy, setting, training=table_1_requests(20_000))
    return policy.policy, policy.seen[:count]


def microseconds(policy, observations):
    """Return the time of each decision, warm, the shorter of two."""
    times = []
    for observation in observations:
        policy.decide(observation)
        best = np.inf
        for _ in range(2):
            begin = time.perf_counter()
            policy.decide(observation)
            best = min(best, time.perf_counter() - begin)
        times.append(1e6 * best)
    return np.array(times)


def refresh_nanoseconds(workers=144):
    """Return the time of a survival refresh of all running requests, per request."""
    _, seen = rounds("br-h:horizon=80", workers, count=40)
    training = table_1_requests(20_000)
    best = np.inf
    for observation in seen:
        active = observation.active
        predictor = make_predictor("survival", requests=training, training=training, horizon=80)
        for _ in range(3):
            forecaster = Forecaster(Foresight(80, refresh=1), predictor, int(active.requests.max()) + 1)
            nobody = np.zeros(0, dtype=np.int64)
            begin = time.perf_counter()
            forecaster.forecast(active.requests, active.prompt, active.generated, nobody, nobody)
            best = min(best, (time.perf_counter() - begin) / active.requests.size)
    return 1e9 * best


def fast_phi_microseconds(workers=144, count=100):
    """Return what fast-phi with five nodes takes per request routed, the projection of the step included."""
    policy, seen = rounds("fast-phi:admission=pooled", workers, count=count)
    times = microseconds(policy, seen)
    return float(np.median(times / [min(o.sizes.size, int(o.free_slots.sum())) for o in seen]))


def measured(workers, horizon, pool=None, count=ROUNDS):
    """Return P50, P99 and what a round was like."""
    spec = f"br-h:horizon={horizon}" if horizon else f"br-h:horizon=0,beta={workers}"
    policy, seen = rounds(spec, workers, pool, count)
    times = microseconds(policy, seen)
    admitted = float(np.mean([min(o.sizes.size, int(o.free_slots.sum())) for o in seen]))
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return {"rounds": len(seen), "p50": float(p50), "p99": float(p99), "admitted": admitted}


def draw(sweeps, path):
    """Draw the median round against workers, horizon and pool."""
    figure, _ = new_figure(width=12, height=4)
    figure.clear()
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (label, rows) in zip(panels, sweeps.items(), strict=True):
        sizes = list(rows)
        for index, (key, name) in enumerate((("p50", "median"), ("p99", "P99"))):
            axes.plot(sizes, [rows[x][key] for x in sizes], marker="o", markersize=3, label=name, **line_style(index))
        axes.set_xscale("symlog" if 0 in sizes else "log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel(label)
        axes.grid(visible=True, alpha=0.25)
    panels[0].set_ylabel("microseconds a round")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("lookahead-speed"), help="files begin with this")
    options = parser.parse_args()
    lines = ["| round | wanted | P50 µs | P99 µs | requests admitted |", "|---|--:|--:|--:|--:|"]
    figures = {}
    for workers, horizon, pool, most, most_p99 in TARGETS:
        row = measured(workers, horizon, pool, 2000 if workers < 64 else ROUNDS)
        wanted = f"P50 {most} µs" + (f", P99 {most_p99} µs" if most_p99 else "")
        what = f"br-h, G = {workers}, H = {horizon}, pool {pool or 4 * workers}"
        figures[what] = row
        lines.append(f"| {what} | {wanted} | {row['p50']:.1f} | {row['p99']:.1f} | {row['admitted']:.1f} |")
    refresh = refresh_nanoseconds()
    figures["survival refresh, ns a request"] = refresh
    lines.append(f"| survival refresh, a request | 1 µs | {refresh / 1e3:.3f} | | |")
    fast_phi = fast_phi_microseconds()
    figures["fast-phi, K = 5, G = 144, us a request"] = fast_phi
    lines.append(f"| fast-phi, K = 5, G = 144, a request, projection included | 20 µs | {fast_phi:.1f} | | |")
    sweeps = {
        "workers G (H = 80, pool 4 G)": {g: measured(g, 80, count=150) for g in WORKERS},
        "horizon H (G = 16, pool 64)": {h: measured(16, h, count=150) for h in HORIZONS},
        "pool (G = 16, H = 80)": {n: measured(16, 80, n, 150) for n in POOLS},
    }
    draw(sweeps, options.out.with_name(options.out.name + ".png"))
    text = "\n".join(lines) + "\n"
    print(text)
    write_file(options.out.with_name(options.out.name + ".md"), text)
    content = json.dumps({"targets": figures, "sweeps": sweeps}, indent=2) + "\n"
    write_file(options.out.with_name(options.out.name + ".json"), content)


if __name__ == "__main__":
    main()
