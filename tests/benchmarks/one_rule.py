"""Which one rule is safe: tokens a second of whole runs, paired by draw, on traces that no rule was tuned on.

python -m tests.benchmarks.one_rule --shared SHARED --out FILE --part ages
python -m tests.benchmarks.one_rule --shared SHARED --out FILE --part training
python -m tests.benchmarks.one_rule --shared SHARED --out FILE --part held-out
python -m tests.benchmarks.one_rule --shared SHARED --out FILE --part yardstick

`ages` finds the largest age bound of each rule with which its P99 wait stays within three times that of first come,
first served on both training traces; the bounds found are kept in `RULES`. `training` and `held-out` run every rule
over every case and draw. `yardstick` compares them with the exact step rule of limited effort and with rules that look
ahead, on shorter runs. Each line of FILE is one run, and runs that are there are not done again. Prints tables in
markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.policies import make_policy
from lbopt.simulator import simulate
from lbopt.statistics import over_seeds
from tests.benchmarks.one_rule_cases import DRAWS, HELD_OUT, TRACES, TRAINING, Case, cases, drawn, source

#: First come, first served, each to the lightest worker: whose waits are the measure.
FIFO = "jsq-load"
#: A P99 wait may be so many times that of FIFO, and at least so many steps.
MOST_WAIT = 3
AUTO = "auto"
FLOOR = "max-min"

#: Rules with an age bound, and the bounds tried: the largest that keeps the waits stands in `RULES`.
BOUNDED = ("br-0", "br-0:stage_switch=0")
LADDER = (3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 60, 120)

#: `age_bound=told` is no rule but a measure: it is told the longest wait allowed in the very draw.
RULES = (
    FIFO,
    FLOOR,
    "max-min:scope=pool",
    "br-0",
    "br-0:stage_switch=0",
    "br-0:stage_switch=0,age_bound=9",
    "br-0:stage_switch=0,age_bound=told",
    AUTO,
)

#: Shorter runs, for rules that are slow.
TURNOVERS_OF_YARDSTICK = 24
DRAWS_OF_YARDSTICK = 4
EFFORT = "effort=20000,time_limit=none"
YARDSTICK = (
    FIFO,
    FLOOR,
    "br-0",
    "br-0:stage_switch=0",
    "br-h",
    "br-h:horizon=20,beta=723.2,gamma=0.528,stage_switch=0,growth=0,departures=weighted",
    f"bf-io:{EFFORT}",
    AUTO,
)
FIGURES = (
    "whole_run_tokens_per_second",
    "whole_run_share_of_ceiling",
    "tpot_mean_seconds",
    "waiting_mean_steps",
    "waiting_p99_steps",
    "waiting_max_steps",
    "idle_share",
    "occupancy",
)


class Store:
    """Runs that are done, one a line of a file: a killed comparison goes on where it stopped."""

    def __init__(self, file: Path, data: Path, first_draw: int = 0) -> None:
        self.file, self.data, self.first_draw = file, data, first_draw
        self.rows: dict[str, dict[str, float]] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                row = json.loads(line)
                self.rows[row.pop("run")] = row

    def __getitem__(self, run: tuple[Case, str, int, float | None]) -> dict[str, float]:
        return self.rows[self.key(*run)]

    @staticmethod
    def key(case: Case, rule: str, draw: int, turnovers: float | None) -> str:
        """Return the name of a run; a file holds runs of one first draw."""
        return f"{case.name} | {rule} | draw {draw}" + (f" | {turnovers:g} turnovers" if turnovers else "")

    def fill(self, wanted: Sequence[Case], rules: Sequence[str], draws: int, turnovers: float | None = None) -> None:
        """Do the runs that are missing."""
        with ProgressBar() as bar:
            for case in wanted:
                bar.begin(case.name, draws)
                for draw in range(draws):
                    missing = [rule for rule in rules if self.key(case, rule, draw, turnovers) not in self.rows]
                    if missing:
                        self._run(case, missing, draw, turnovers)
                    bar.advance(1)

    def _run(self, case: Case, rules: Sequence[str], draw: int, turnovers: float | None) -> None:
        trace = case.requests(self.data, self.first_draw + draw, turnovers)
        past = drawn(source(case.trace, self.data), 20_000, self.first_draw + draw + 1000)
        for rule in rules:
            allowed = rule
            if rule.endswith("=told"):
                fifo = self[case, FIFO, draw, turnovers]["waiting_p99_steps"]
                allowed = rule.replace("=told", f"={MOST_WAIT * max(1, round(fifo))}")
            metrics = simulate(trace, make_policy(allowed), case.setting, training=past).metrics()
            row = {name: float(getattr(metrics, name)) for name in FIGURES}
            self.rows[self.key(case, rule, draw, turnovers)] = row
            with self.file.open("a") as out:
                out.write(json.dumps({"run": self.key(case, rule, draw, turnovers), **row}) + "\n")

    def column(
        self, case: Case, rule: str, draws: int, figure: str = FIGURES[0], turnovers: float | None = None
    ) -> np.ndarray:
        """Return a figure of each draw."""
        return np.array([self[case, rule, draw, turnovers][figure] for draw in range(draws)])


def find_ages(store: Store) -> None:
    """Print the largest age bound of each rule that keeps the waits on all closed cases of the training traces."""
    wanted = [case for case in cases(TRAINING) if case.arrivals == "closed" and case.period is None]
    print("| rule | largest age bound that keeps the waits | P99 wait over that of FIFO with it | without a bound |")
    print("|---|--:|--:|--:|")
    for rule in BOUNDED:
        kept = None
        for age in LADDER:
            worst = _longest_wait(store, wanted, f"{rule}{',' if ':' in rule else ':'}age_bound={age}")
            if worst <= MOST_WAIT:
                kept = age, worst
        free = _longest_wait(store, wanted, rule)
        print(f"| `{rule}` | {kept[0] if kept else 'none'} | {kept[1] if kept else float('nan'):.2f} | {free:.1f} |")


def _longest_wait(store: Store, wanted: Sequence[Case], rule: str) -> float:
    store.fill(wanted, (FIFO, rule), 1)
    return max(wait_ratio(store, case, rule, 1) for case in wanted)


def wait_ratio(store: Store, case: Case, rule: str, draws: int, turnovers: float | None = None) -> float:
    """Return the mean P99 wait over that of FIFO, where waits below one step count as one."""
    mine, fifo = (
        max(1.0, store.column(case, name, draws, "waiting_p99_steps", turnovers).mean()) for name in (rule, FIFO)
    )
    return float(mine / fifo)


def judge(
    store: Store, wanted: Sequence[Case], rules: Sequence[str], draws: int, turnovers: float | None = None
) -> None:
    """Print a row for each case, then the worst of each rule."""

    def gain(case: Case, rule: str, other: str) -> tuple[float, float, float]:
        logs = np.log(store.column(case, rule, draws, turnovers=turnovers))
        found = over_seeds(logs - np.log(store.column(case, other, draws, turnovers=turnovers)))
        return tuple(100 * np.expm1(value) for value in (found.mean, found.low, found.high))  # type: ignore[return-value]

    regret: dict[str, list[float]] = {rule: [] for rule in rules}
    bounded: dict[str, list[float]] = {rule: [] for rule in rules}
    waits: dict[str, list[float]] = {rule: [] for rule in rules}
    print("| case | FIFO's P99 wait | auto against max-min, % | best rule | auto against it, % ", end="")
    print("| best that keeps the waits | auto against it, % | auto's P99 wait | that of the best |")
    print("|---|--:|---|---|---|---|---|--:|--:|")
    for case in wanted:
        mean = {rule: store.column(case, rule, draws, turnovers=turnovers).mean() for rule in rules}
        late = {rule: wait_ratio(store, case, rule, draws, turnovers) for rule in rules}
        best = max(mean, key=mean.__getitem__)
        fair = max((rule for rule in rules if late[rule] <= MOST_WAIT), key=mean.__getitem__)
        for rule in rules:
            regret[rule].append(gain(case, rule, best)[0])
            bounded[rule].append(gain(case, rule, fair)[0])
            waits[rule].append(late[rule])
        fifo = store.column(case, FIFO, draws, "waiting_p99_steps", turnovers).mean()
        cells = [shown(gain(case, AUTO, FLOOR)), f"`{best}`", shown(gain(case, AUTO, best))]
        cells += [f"`{fair}`", shown(gain(case, AUTO, fair)), f"{late[AUTO]:.2f}", f"{late[best]:.1f}"]
        print(f"| {case.name} | {fifo:.0f} | " + " | ".join(cells) + " |")
    print("\n| rule | worst against the best, % | mean, % | worst against the best that keeps the waits, % ", end="")
    print("| P99 wait over FIFO's, worst | cases within |\n|---|--:|--:|--:|--:|--:|")
    for rule in sorted(rules, key=lambda rule: -min(regret[rule])):
        within = sum(value <= MOST_WAIT for value in waits[rule])
        print(
            f"| `{rule}` | {min(regret[rule]):.2f} | {np.mean(regret[rule]):.2f} | {min(bounded[rule]):.2f} "
            f"| {max(waits[rule]):.1f} | {within} of {len(wanted)} |"
        )


def shown(interval: tuple[float, float, float]) -> str:
    """Return a gain in per cent with its interval."""
    return f"{interval[0]:+.2f} ({interval[1]:+.2f} to {interval[2]:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="file of runs")
    parser.add_argument("--part", choices=("ages", "training", "held-out", "yardstick"), default="held-out")
    parser.add_argument("--first-draw", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--rule", action="append", default=[], help="one more rule; may be given again")
    asked = parser.parse_args()
    store = Store(asked.out, asked.shared / "data", asked.first_draw)
    if asked.part == "ages":
        find_ages(store)
    elif asked.part == "yardstick":
        wanted = [Case(trace, 16, "closed") for trace in TRACES]
        rules = (*YARDSTICK, *asked.rule)
        store.fill(wanted, rules, DRAWS_OF_YARDSTICK, TURNOVERS_OF_YARDSTICK)
        judge(store, wanted, rules, DRAWS_OF_YARDSTICK, TURNOVERS_OF_YARDSTICK)
    else:
        wanted, rules = cases(TRAINING if asked.part == "training" else HELD_OUT), (*RULES, *asked.rule)
        store.fill(wanted, rules, DRAWS)
        judge(store, wanted, rules, DRAWS)


if __name__ == "__main__":
    main()
