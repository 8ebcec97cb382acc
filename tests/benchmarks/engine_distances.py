"""How far the rules of serving engines are from the exact step rule: by age of sight, size of the fleet, occupancy.

python -m tests.benchmarks.engine_distances --shared SHARED --out OUT

Cases and draws of *one rule* (Azure's and Mooncake's conversations, B = 72), eight turnovers, three paired draws. The
yardstick is `bf-io` with an effort limit, pooled, that sees the truth. A distance is how much longer a token takes on
average, in percent. Runs that the file OUT holds are not made again.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.policies import make_policy
from lbopt.simulator import simulate
from tests.benchmarks.one_rule_cases import Case

EXACT = "bf-io:effort=20000,time_limit=none"
RULES = (
    *("round-robin", "jsq", "vllm", "sglang", "tpu-inference", "dynamo", "llm-d", "lmdeploy", "vllm-ascend"),
    *("tensorrt-llm", "max-min", "auto", EXACT),
)
TRACES = ("azure-conv", "mooncake")
SWEEPS = {
    "age": [(16, "0.9", period) for period in (None, 0.02, 0.1, 1.0, 10.0)],
    "workers, the truth": [(G, "0.9", None) for G in (8, 16, 64, 144)],
    "workers, reports every 100 ms": [(G, "0.9", 0.1) for G in (8, 16, 64, 144)],
    "load, the truth": [(16, load, None) for load in ("0.3", "0.5", "0.7", "0.9", "closed")],
    "load, reports every 100 ms": [(16, load, 0.1) for load in ("0.3", "0.5", "0.7", "0.9", "closed")],
}
TURNOVERS = 8
DRAWS = 3
FIGURES = ("tpot_mean_seconds", "imbalance_tokens", "occupancy", "waiting_p99_steps")


class Runs:
    """Runs by name, kept in a file, one a line."""

    def __init__(self, file: Path, data: Path) -> None:
        lines = file.read_text().splitlines() if file.exists() else []
        self.file, self.data = file, data
        self.rows = {row.pop("run"): row for row in map(json.loads, lines)}

    def figure(self, case: Case, rule: str, name: str = FIGURES[0]) -> np.ndarray:
        """Return a figure of every draw; what is missing is run."""
        found = []
        for draw in range(DRAWS):
            key = f"{case.name} | {rule} | {draw}"
            if key not in self.rows:
                trace = case.requests(self.data, draw, TURNOVERS)
                metrics = simulate(trace, make_policy(rule), case.setting).metrics()
                self.rows[key] = {one: float(getattr(metrics, one)) for one in FIGURES}
                with self.file.open("a") as out:
                    out.write(json.dumps({"run": key, **self.rows[key]}) + "\n")
            found.append(self.rows[key][name])
        return np.array(found)


def main() -> None:
    """Make all runs and print a table for each sweep."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="file of runs, one a line")
    given = parser.parse_args()
    runs = Runs(given.out, given.shared / "data")
    wanted = [Case(trace, *setting) for sweep in SWEEPS.values() for trace in TRACES for setting in sweep]
    with ProgressBar() as bar:
        bar.begin("cases", len(wanted))
        for case in wanted:
            for rule in RULES:
                runs.figure(case, rule)
            runs.figure(Case(case.trace, case.workers, case.arrivals), EXACT)
            bar.advance()
    for words, sweep in SWEEPS.items():
        for trace in TRACES:
            cases = [Case(trace, *setting) for setting in sweep]
            heads = [
                ("truth" if p is None else f"{1000 * p:g} ms") if words == "age" else f"{G}, {a}" for G, a, p in sweep
            ]
            print(f"\n{trace}, by {words}\n\n| rule | {' | '.join(heads)} |\n|---|" + "--:|" * len(heads))
            occupied = [f"{100 * runs.figure(case, EXACT, 'occupancy').mean():.1f}" for case in cases]
            print("| *occupancy with `bf-io`, %* |", " | ".join(occupied), "|")
            for rule in RULES:
                cells = []
                for case in cases:
                    exact = runs.figure(Case(case.trace, case.workers, case.arrivals), EXACT)
                    cells.append(f"{100 * (runs.figure(case, rule) / exact - 1).mean():+.1f}")
                print(f"| `{'bf-io' if rule == EXACT else rule}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
