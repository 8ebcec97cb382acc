"""What memory and speed are worth to a rule that knows them: whole runs of fleets in detail, paired by draw.

python -m tests.benchmarks.conditions_in_runs --shared SHARED --out FILE --draws 4

Sixteen workers of 72 slots: one needs twice as long for its part of a step; or memory holds half of what full slots
would (BurstGPT: 0.35 of it); or both. Requests are drawn in blocks of 200 from Azure's conversations and BurstGPT, as
in `one_rule_cases`, and come at their times, stretched to 80 % of what the fleet without detail could serve, or so that
64 wait always. Each line of FILE is one run, and runs that are there are not done again. Prints tables in markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, TraceTimes, make_detail, simulate
from lbopt.statistics import over_seeds
from tests.benchmarks.one_rule_cases import SLOTS, drawn, source

WORKERS, REQUESTS = 16, 8_000
EFFORT = "effort=20000,time_limit=none"
BLIND = f"bf-io:conditions=no,{EFFORT}"
KNOWING = f"bf-io:{EFFORT}"
RULES = (
    "jsq",
    "max-min",
    "br-0",
    "auto",
    BLIND,
    KNOWING,
    f"bf-io:{EFFORT},room=128",
    f"bf-io:{EFFORT},age_bound=100",
    "max-min:pace=yes",
)
#: Share of the tokens of full slots that memory holds.
SHARE = {"azure-conv": 0.5, "burstgpt": 0.35}
#: Words, and the detail; memory is limited where somebody can be pre-empted.
FLEETS = {
    "one slow worker": "slow=8:2",
    "little memory": "preempt=recompute,prefill_cost=20us",
    "both": "preempt=recompute,prefill_cost=20us,slow=8:2",
}
ARRIVALS = {"80 % of saturation": TraceTimes(0.8), "64 wait always": ClosedLoop()}
#: Figures: words, unit, digits.
FIGURES = {
    "tokens_per_second": ("Tokens a second, thousands", 1e-3, 1),
    "step_seconds": ("Mean step, ms", 1e3, 2),
    "imbalance": ("Mean imbalance at the barrier, thousand tokens times the factors of their workers", 1e-3, 0),
    "preemptions": ("Pre-emptions", 1, 0),
    "wait_p99_seconds": ("P99 wait, s", 1, 1),
    "tpot_seconds": ("Time a token, mean, ms", 1e3, 2),
}


def measured(run: Run) -> dict[str, float]:
    """Return the figures of a run; in its imbalance loads count times their workers' factors, as the barrier waits."""
    detail, metrics = run.setting.detail, run.metrics()
    factor = np.ones(WORKERS)
    for worker, slow in () if detail is None else detail.slow:
        factor[worker] = slow
    loads = run.steps["barrier_loads"][run.window.rows] * factor
    wait = run.requests["start_clock"] - run.requests["reveal_clock"]
    return {
        "tokens_per_second": metrics.whole_run_tokens_per_second,
        "step_seconds": float(run.steps["seconds"][run.window.rows].mean()),
        "imbalance": float((WORKERS * loads.max(axis=1) - loads.sum(axis=1)).mean()),
        "preemptions": float(run.happened.preemptions if run.happened is not None else 0),
        "wait_p99_seconds": float(np.quantile(wait, 0.99)),
        "tpot_seconds": metrics.tpot_mean_seconds,
        "open": float(run.tally.get("open", 0)),
        "decisions": float(run.decisions),
        "wall_seconds": run.seconds,
    }


def setting_of(trace: Trace, name: str, arrivals: str, fleet: str) -> SimulationSetting:
    """Return the simulation of a draw.

    Parameters
    ----------
    trace, name
        The draw, and the name of its source.
    arrivals, fleet
        Keys of `ARRIVALS` and `FLEETS`.
    """
    capacity = None
    if "preempt" in FLEETS[fleet]:
        capacity = int(SHARE[name] * SLOTS * trace.mean_resident_tokens)
    return SimulationSetting(
        Fleet(WORKERS, SLOTS, capacity),
        ARRIVALS[arrivals],
        event_order="theory",
        detail=make_detail(FLEETS[fleet]),
    )


def short(rule: str) -> str:
    """Return the rule without the limit of its effort."""
    return rule.replace(f"{EFFORT},", "").replace(f",{EFFORT}", "").replace(f":{EFFORT}", "")


def print_tables(found: dict[str, dict[str, Any]], draws: int) -> None:
    """Print a row for each case: tokens a second against `BLIND` by draw, then the mean of each figure."""

    def column(case: str, rule: str, figure: str) -> np.ndarray:
        return np.array([found[f"{case} | {rule} | {draw}"][figure] for draw in range(draws)])

    def gain(case: str, rule: str) -> str:
        ratio = column(case, rule, "tokens_per_second") / column(case, BLIND, "tokens_per_second")
        mean = over_seeds((100 * (ratio - 1)).tolist())
        ends = "" if mean.low is None else f" ({mean.low:+.1f} to {mean.high:+.1f})"
        return "0" if rule == BLIND else f"{mean.mean:+.1f}{ends}"

    def table(words: str, cell: Callable[[str, str], str]) -> None:
        print(f"\n### {words}\n\n| case |", " | ".join(f"`{short(rule)}`" for rule in RULES), "|")
        print("|---|" + "--:|" * len(RULES))
        for case in map(" | ".join, product(SHARE, FLEETS, ARRIVALS)):
            print(f"| {case.replace(' | ', ', ')} |", " | ".join(cell(case, rule) for rule in RULES), "|")

    table("Tokens a second of the whole run against `bf-io:conditions=no`, %", gain)
    for figure, (words, unit, digits) in FIGURES.items():
        table(words, partial(_mean, column, figure, unit, digits))
    asked = [row for name, row in found.items() if f" | {KNOWING} | " in name]
    opened, decisions = (sum(row[name] for row in asked) for name in ("open", "decisions"))
    print(f"\n`bf-io` left {opened:,.0f} of {decisions:,.0f} decisions open; a run took", end=" ")
    print(f"{np.mean([row['wall_seconds'] for row in asked]):.0f} s.")


def _mean(column: Callable[..., np.ndarray], figure: str, unit: float, digits: int, case: str, rule: str) -> str:
    """Return the mean of a figure over the draws, as the table shows it."""
    return f"{unit * column(case, rule, figure).mean():,.{digits}f}"


def main() -> None:
    """Make the runs that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="file of runs, one a line")
    parser.add_argument("--draws", type=int, default=4, help="draws of every case")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    found = {row.pop("run"): row for row in map(json.loads, lines)}
    with ProgressBar() as bar:
        bar.begin("runs", given.draws * len(SHARE) * len(FLEETS) * len(ARRIVALS) * len(RULES))
        for draw, name in product(range(given.draws), SHARE):
            trace = drawn(source(name, given.shared / "data"), REQUESTS, draw)
            for fleet, arrivals, rule in product(FLEETS, ARRIVALS, RULES):
                key = f"{name} | {fleet} | {arrivals} | {rule} | {draw}"
                if key not in found:
                    setting = setting_of(trace, name, arrivals, fleet)
                    found[key] = measured(simulate(trace, make_policy(rule), setting, keep_loads=True))
                    with given.out.open("a") as out:
                        out.write(json.dumps({"run": key, **found[key]}) + "\n")
                bar.advance()
    print_tables(found, given.draws)


if __name__ == "__main__":
    main()
