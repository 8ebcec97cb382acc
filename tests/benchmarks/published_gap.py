"""How far every decision of the published heuristic was from the optimum of its step.

python -m tests.benchmarks.published_gap --shared ../shared --out published-gap

The authors' own trajectory is replayed, which reproduces their run to the digit; at each of its decisions the same step
is solved exactly. The gap is in tokens of imbalance, after admission and before growth. "choosing" are the decisions in
which more requests wait than there are free slots: all but those that fill the fleet and the last. Writes OUT.json,
OUT.csv and OUT.md.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet, StepProblem, barrier_total, check_assignment, objective
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate
from lbopt.simulator.simulate import Look
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact import search_exactly
from lbopt.whole_file import write_file

SETTING = SimulationSetting(Fleet(16, 72))
LOGS = ("bfio-h0", "bfio-h20")
EFFORT = 200_000


def judged(log, trace, bar, label):
    """Return one line per decision of the log."""
    run = simulate(trace, log, SETTING)
    seen = []
    simulate(trace, log, SETTING, look=Look(np.arange(run.num_steps), seen.append))
    bar.begin(label, len(seen))
    lines = []
    for observation in seen:
        problem = StepProblem.now(observation.loads, observation.free_slots, observation.sizes)
        starts = run.requests["start_step"][observation.requests] == observation.step
        theirs = np.where(starts, run.requests["worker"][observation.requests], -1)
        theirs = check_assignment(problem, theirs, who=f"{log.name}, step {observation.step},", full=False)
        value, full = objective(problem, theirs), int(starts.sum()) == problem.num_admitted
        answer = search_exactly(problem, value if full else None, Limits(effort=EFFORT))
        lines.append(
            {
                "step": observation.step,
                "full": full,
                "free_slots": problem.num_free_slots,
                "waiting": problem.num_requests,
                "heuristic": value,
                "best": answer.cost,
                "bound": answer.bound,
                "barrier": barrier_total(problem, theirs),
            }
        )
        bar.advance()
    return pd.DataFrame(lines)


def summary(table):
    """Return the figures of one log; gaps are to the best placement known, which is the optimum where it is proved."""
    full = table[table.full]
    proved = full.best == full.bound
    gap = full.heuristic - full.best
    levels = gap.quantile([0.5, 0.9, 0.99])
    return {
        "decisions": len(table),
        "kept slots empty": int((~table.full).sum()),
        "proved optima": float(proved.mean()),
        "mean optimum": float(full.best.mean()),
        "mean gap": float(gap.mean()),
        "median gap": float(levels[0.5]),
        "P90 gap": float(levels[0.9]),
        "P99 gap": float(levels[0.99]),
        "max gap": int(gap.max()),
        "mean gap / G·M": float((gap / full.barrier).mean()),
        "max gap / G·M": float((gap / full.barrier).max()),
        "optimal decisions": float((full.heuristic == full.bound).mean()),
        "within 1 % of the imbalance": float((gap <= 0.01 * full.heuristic).mean()),
        "undecided tokens, all open steps": int((full.best - full.bound).sum()),
    }


def markdown(summaries):
    """Return the table, one column per log."""
    lines = ["| | " + " | ".join(summaries) + " |", "|---" * (len(summaries) + 1) + "|"]
    for key in next(iter(summaries.values())):
        shares = key in ("proved optima", "optimal decisions", "within 1 % of the imbalance") or "G·M" in key
        cells = [f"{row[key]:.3%}" if shares else f"{row[key]:,.0f}" for row in summaries.values()]
        lines.append(f"| {key}{'' if shares or 'gap' not in key else ' (tokens)'} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", default=LOGS, metavar="LOG", help="bfio-h0, bfio-h20")
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/ and reference/")
    parser.add_argument("--out", type=Path, default=Path("published-gap"), help="files begin with this")
    options = parser.parse_args()
    trace = read_trace(options.shared / "data" / "burstgpt_8000.json").resampled(100_000, 42)
    tables = {}
    with ProgressBar() as bar:
        for label in options.logs:
            file = options.shared / "reference" / f"ref_{label}_burst100000_seed42_G16_B72.npz"
            tables[label] = judged(make_policy(f"replay:{file}"), trace, bar, label)
    summaries = {}
    for label, table in tables.items():
        summaries[label] = summary(table)
        summaries[f"{label}, choosing"] = summary(table[table.waiting > table.free_slots])
    text = markdown(summaries)
    print(text)
    everything = pd.concat(tables, names=["log"]).reset_index(level="log")
    write_file(options.out.with_name(options.out.name + ".csv"), everything.to_csv(index=False))
    write_file(options.out.with_name(options.out.name + ".json"), json.dumps(summaries, indent=2) + "\n")
    write_file(options.out.with_name(options.out.name + ".md"), text)


if __name__ == "__main__":
    main()
