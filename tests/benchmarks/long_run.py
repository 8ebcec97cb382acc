"""The exact myopic rule over the 100,000 requests of the BF-IO paper's Table 1, beside the published rows.

python -m tests.benchmarks.long_run --shared ../shared --out long-run

Writes OUT.json (figures that a rerun reproduces digit for digit), OUT.times.json (those of the clock) and OUT.md
(tables). A decision of bf-io ends by the work of its search, not by the clock: else a run would differ from machine to
machine.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate
from lbopt.whole_file import write_file

SETTING = SimulationSetting(Fleet(16, 72))
EFFORT = "effort=200000,time_limit=none"
POLICIES = (
    f"bf-io:{EFFORT}",
    f"bf-io:tie=newest,{EFFORT}",
    f"bf-io:tie=random,{EFFORT}",
    f"bf-io:age_bound=50,{EFFORT}",
    f"bf-io:age_bound=50,tie=newest,{EFFORT}",
    f"bf-io:age_bound=50,tie=random,{EFFORT}",
    "max-min",
    "max-min:scope=pool",
    "br-0",
    "br-0:age_bound=50",
)
FIGURES = (
    ("imbalance_tokens", "imbalance (tokens)", 1, 0),
    ("throughput_tokens_per_second", "tokens / s", 1, 0),
    ("tpot_mean_seconds", "TPOT (ms)", 1e3, 3),
    ("energy_joules", "energy (kJ)", 1e-3, 1),
    ("mean_load_tokens", "mean load (tokens)", 1, 0),
    ("waiting_mean_steps", "wait mean (steps)", 1, 2),
    ("waiting_p99_steps", "P99", 1, 0),
    ("waiting_max_steps", "max", 1, 0),
    ("waited_over_100", "waited > 100 steps", 1, 0),
    ("waiting_mean_steps_of_largest", "wait mean, largest 1 %", 1, 1),
)


def published(reference, trace):
    """Return the authors' rows under our names."""
    rows = {}
    for label, row in json.loads((reference / "reference_100k_metrics.json").read_text()).items():
        figures, waits = row["metrics"], row["pool_wait_steps"]
        rows[f"published {label}"] = {
            "imbalance_tokens": figures["avg_gpu_imbalance"],
            "throughput_tokens_per_second": figures["throughput_tokens_per_sec"],
            "tpot_mean_seconds": figures["avg_latency_per_token"],
            "energy_joules": figures["total_energy"],
            "waiting_mean_steps": waits["mean"],
            "waiting_p99_steps": waits["p99"],
            "waiting_max_steps": waits["max"],
            "waited_over_100": waits["n_over_100"],
            "waiting_mean_steps_of_largest": waits["mean_big1pct"],
        }
        # The mean load is not among the authors' figures; their trajectory and the rules behind it are ours to replay.
        log = reference / f"ref_{label.lower()}_burst100000_seed42_G16_B72.npz"
        spec = f"replay:{log}" if log.is_file() else {"FCFS": "fcfs", "JSQ": "jsq-load"}[label]
        again = simulate(trace, make_policy(spec), SETTING).metrics()
        assert np.isclose(again.imbalance_tokens, figures["avg_gpu_imbalance"], rtol=1e-12)
        rows[f"published {label}"]["mean_load_tokens"] = again.mean_load_tokens
    return rows


def measured(spec, trace, bar):
    """Return what a rerun reproduces, and what the clock said."""
    policy = make_policy(spec)
    told = [0]

    def show(ended, _total):
        bar.advance(ended - told[0])
        told[0] = ended

    begun = time.process_time()
    run = simulate(trace, policy, SETTING, progress=show)
    processor = time.process_time() - begun
    figures = run.metrics().to_dict() | {"decisions": run.decisions, "tally": run.tally}
    waited = run.requests["start_step"] - run.requests["reveal_step"]
    figures["waited_over_100"] = int((waited > 100).sum())
    largest = trace.prompt > np.quantile(trace.prompt, 0.99)
    figures["waiting_mean_steps_of_largest"] = float(waited[largest].mean())
    clock = {"seconds": run.seconds, "processor_seconds": processor}
    if run.tally:
        gaps = run.open_gaps
        figures |= {
            "closed_share": run.tally.get("proved", 0) / sum(run.tally.values()),
            "open_gap_tokens": {
                "total": int(gaps.sum()),
                "mean": float(gaps.mean()) if gaps.size else 0.0,
                "max": int(gaps.max(initial=0)),
            },
            "optimum_mean_tokens": float(run.solved["imbalance"].mean()),
        }
        spent = np.array(policy.ledger.seconds) * 1e3
        names = ("p50_ms", "p90_ms", "p99_ms", "max_ms")
        clock |= dict(zip(names, np.quantile(spent, [0.5, 0.9, 0.99, 1]).tolist(), strict=True))
        clock["decisions_seconds"] = float(spent.sum() / 1e3)
    return figures, clock


def shown(spec):
    """Return a policy without what is the same for all."""
    return spec.replace(f",{EFFORT}", "").replace(f":{EFFORT}", "")


def markdown(rows, times):
    """Return the tables."""
    lines = ["| policy | " + " | ".join(label for _, label, _, _ in FIGURES) + " |", "|---" * (len(FIGURES) + 1) + "|"]
    for name, row in rows.items():
        cells = [
            f"{row[key] * factor:,.{digits}f}" if row.get(key) is not None else "–"
            for key, _, factor, digits in FIGURES
        ]
        lines.append(f"| {shown(name)} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| policy | decisions | proved | open | their gaps: total, mean, max (tokens) "
        "| P50 ms | P90 | P99 | max | run (s) | of processor |",
        "|---" * 11 + "|",
    ]
    for name, clock in times.items():
        if "p50_ms" in clock:
            row = rows[name]
            gap = row["open_gap_tokens"]
            lines.append(
                f"| {shown(name)} | {row['decisions']:,} | {row['closed_share']:.2%} | {row['tally'].get('open', 0)} "
                f"| {gap['total']:,}, {gap['mean']:,.0f}, {gap['max']:,} "
                f"| {clock['p50_ms']:.2f} | {clock['p90_ms']:.1f} "
                f"| {clock['p99_ms']:.0f} | {clock['max_ms']:,.0f} "
                f"| {clock['seconds']:.1f} | {clock['processor_seconds']:.1f} |"
            )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", default=POLICIES, metavar="POLICY")
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/ and reference/")
    parser.add_argument("--count", type=int, default=100_000, help="requests")
    parser.add_argument("--draw", type=int, default=42, help="seed of the draw; 42 is that of Table 1")
    parser.add_argument("--out", type=Path, default=Path("long-run"), help="files begin with this")
    options = parser.parse_args()
    trace = read_trace(options.shared / "data" / "burstgpt_8000.json").resampled(options.count, options.draw)
    for spec in options.policies:  # compile or load, outside the clock; a wrong name costs nothing
        simulate(trace.first(300), make_policy(spec), SETTING)
    rows = published(options.shared / "reference", trace) if (options.count, options.draw) == (100_000, 42) else {}
    times = {}
    try:
        with ProgressBar() as bar:
            for spec in options.policies:
                bar.begin(shown(spec), len(trace))
                rows[spec], times[spec] = measured(spec, trace, bar)
    except KeyboardInterrupt:
        print("interrupted: what follows covers the runs that ended before")
    text = markdown(rows, times)
    print(text)
    for ending, content in ((".json", rows), (".times.json", times)):
        write_file(options.out.with_name(options.out.name + ending), json.dumps(content, indent=2) + "\n")
    write_file(options.out.with_name(options.out.name + ".md"), text)


if __name__ == "__main__":
    main()
