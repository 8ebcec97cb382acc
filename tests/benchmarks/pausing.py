"""What pausing (DyntraLB) and a gate are worth, what placing is worth, and both together, on the cases of *one rule*.

python -m tests.benchmarks.pausing --shared SHARED --out OUT

All eight traces, B = 72, four paired draws each, the step time of the BF-IO experiments, the truth in sight. Gains are
of tokens a second of the whole run, with 95 % intervals over draws. Runs that the file OUT holds are not made again.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.policies import make_policy
from lbopt.simulator import make_detail, simulate
from lbopt.statistics import over_seeds
from tests.benchmarks.one_rule_cases import DRAWS, TRACES, Case

SETTINGS = ((16, "closed"), (64, "closed"), (16, "0.9"))
RULES = ("round-robin", "jsq", "vllm", "max-min", "auto")
PAUSES = {"none": "", "dynamic": "pause=dynamic", "static": "pause=static", "gate": "gate=vllm-ascend"}
BASE = ("jsq", "none")
FIGURES = ("whole_run_tokens_per_second", "tpot_mean_seconds", "tpot_p99_seconds", "waiting_p99_steps", "occupancy")


def key(case: Case, rule: str, pause: str, draw: int) -> str:
    """Name of a run."""
    return f"{case.name} | {rule} | {pause} | {draw}"


def make_runs(cases: list[Case], data: Path, file: Path) -> dict[str, dict[str, float]]:
    """Make the runs that the file lacks, and return all."""
    lines = file.read_text().splitlines() if file.exists() else []
    found = {row.pop("run"): row for row in map(json.loads, lines)}
    with ProgressBar() as bar:
        bar.begin("runs", len(cases) * DRAWS)
        for case in cases:
            for draw in range(DRAWS):
                trace = case.requests(data, draw)
                for rule in RULES:
                    for pause in PAUSES:
                        if key(case, rule, pause, draw) not in found:
                            setting = replace(case.setting, detail=make_detail(PAUSES[pause]))
                            run = simulate(trace, make_policy(rule), setting)
                            metrics = run.metrics()
                            row = {name: float(getattr(metrics, name)) for name in FIGURES}
                            row["pauses"] = run.happened.pauses / len(trace)
                            found[key(case, rule, pause, draw)] = row
                            with file.open("a") as out:
                                out.write(json.dumps({"run": key(case, rule, pause, draw), **row}) + "\n")
                bar.advance()
    return found


def main() -> None:
    """Make all runs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="file of runs, one a line")
    given = parser.parse_args()
    cases = [Case(trace, G, arrivals) for G, arrivals in SETTINGS for trace in TRACES]
    found = make_runs(cases, given.shared / "data", given.out)

    def column(case: Case, rule: str, pause: str, figure: str) -> np.ndarray:
        return np.array([found[key(case, rule, pause, draw)][figure] for draw in range(DRAWS)])

    def gain(case: Case, one: tuple[str, str], other: tuple[str, str], figure: str = FIGURES[0]) -> str:
        logs = np.log(column(case, *one, figure)) - np.log(column(case, *other, figure))
        spread = over_seeds(logs)
        mean, low, high = (100 * np.expm1(value) for value in (spread.mean, spread.low, spread.high))
        return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"

    names = " | ".join(f"`{rule}`" for rule in RULES)
    print("\ntokens a second of the whole run, %: pausing (static) against none, by rule; placing; both\n")
    print(f"| case | {names} | `auto` against `jsq` | `auto` paused against `jsq` |\n|---|" + "---|" * (len(RULES) + 2))
    for case in cases:
        cells = [gain(case, (rule, "static"), (rule, "none")) for rule in RULES]
        cells += [gain(case, ("auto", pause), BASE) for pause in ("none", "static")]
        print(f"| {case.name} |", " | ".join(cells), "|")
    for other in ("dynamic", "gate"):
        print(f"\n{other} against none, %\n\n| case | {names} |\n|---|" + "---|" * len(RULES))
        for case in cases:
            print(f"| {case.name} |", " | ".join(gain(case, (rule, other), (rule, "none")) for rule in RULES), "|")
    print("\nP99 of the time a token, %, static against none; pauses a request\n")
    print(f"| case | {names} |\n|---|" + "---|" * len(RULES))
    for case in cases:
        cells = []
        for rule in RULES:
            pauses = column(case, rule, "static", "pauses").mean()
            cells.append(f"{gain(case, (rule, 'static'), (rule, 'none'), 'tpot_p99_seconds')}; {pauses:.2f}")
        print(f"| {case.name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
