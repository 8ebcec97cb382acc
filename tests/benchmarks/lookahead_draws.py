"""Looking ahead judged by tokens a second of the whole run, over several draws of the trace behind Table 1.

python -m tests.benchmarks.lookahead_draws --shared ../shared --out lookahead-draws

One draw of 100,000 requests ends with a drain whose length depends on where its longest requests fall. So rules of
`lookahead_table` run over draws 44 to 51, and are compared draw by draw with the exact step. Writes OUT, one
run a line, and goes on where it was stopped.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.policies import make_policy
from lbopt.simulator import simulate
from lbopt.statistics import over_seeds
from tests.benchmarks.lookahead_table import EFFORT, MYOPIC, SETTING, TUNED, short

DRAWS = range(44, 52)
BASE = f"bf-io:{EFFORT}"
RULES = (
    *MYOPIC,
    BASE,
    "auto",
    f"br-h:horizon=20,predictor=oracle,{TUNED['oracle', 20]}",
    f"br-h:horizon=20,predictor=oracle,{TUNED['oracle', 20]},age_bound=50",
    f"br-h:horizon=20,predictor=survival,{TUNED['survival', 20]}",
    f"br-h:horizon=20,predictor=survival,{TUNED['survival', 20]},age_bound=50",
    f"bf-io:horizon=10,gamma=0.5,predictor=survival,departures=weighted,{EFFORT}",
)
#: Figures, their words, and whether they are compared as ratios.
FIGURES = {
    "whole_run_tokens_per_second": "tokens / s, whole run",
    "throughput_tokens_per_second": "tokens / s, window",
    "imbalance_tokens": "imbalance",
    "mean_load_tokens": "mean load",
}
ALONE = {"whole_run_share_of_ceiling": 100, "occupancy": 100, "waiting_p99_steps": 1, "waiting_max_steps": 1}


def main():
    """Make the runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="file of runs, one a line")
    given = parser.parse_args()
    whole = read_trace(given.shared / "data" / "burstgpt_8000.json")
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    found = {row.pop("run"): row for row in map(json.loads, lines)}
    with ProgressBar() as bar:
        bar.begin("runs", len(RULES) * len(DRAWS))
        for draw in DRAWS:
            trace, training = whole.resampled(100_000, draw), whole.resampled(20_000, draw + 1_000_003)
            for rule in RULES:
                if f"{rule} | {draw}" not in found:
                    metrics = simulate(trace, make_policy(rule), SETTING, training=training).metrics()
                    row = {name: float(getattr(metrics, name)) for name in (*FIGURES, *ALONE)}
                    found[f"{rule} | {draw}"] = row
                    with given.out.open("a") as out:
                        out.write(json.dumps({"run": f"{rule} | {draw}", **row}) + "\n")
                bar.advance()

    def column(rule, name):
        return np.array([found[f"{rule} | {draw}"][name] for draw in DRAWS])

    print("| rule |", " | ".join(f"{words}, % against `bf-io`" for words in FIGURES.values()), end=" ")
    print("| of what no rule can pass, % | occupancy, % | P99 wait | longest wait |")
    print("|---|" + "---|" * (len(FIGURES) + len(ALONE)))
    for rule in RULES:
        cells = []
        for name in FIGURES:
            gain = over_seeds(100 * (column(rule, name) / column(BASE, name) - 1))
            cells.append(f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})")
        cells += [f"{unit * column(rule, name).mean():,.{2 if unit > 1 else 0}f}" for name, unit in ALONE.items()]
        words = short(rule) + (", age bound 50" if "age_bound" in rule else "")
        words += " (oracle)" if "oracle" in rule else " (survival)" if "survival" in rule else ""
        print(f"| {words} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
