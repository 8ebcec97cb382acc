"""How often an audit's intervals cover the truth: 60 fleets of the independent engine with much noise a step.

The fleets are those of `fleets.py`, cut to what an engine in Python serves in a second, at 5, 20 and 50 % noise a step.
The truth of a rule is what the engine then does: its time per token over that of the rule that wrote the log, the same
requests, mean over runs of other seeds than the log's. It owes nothing to lbopt, so it is kept in `truths.csv`.

``cd tests && python -m audit.coverage`` prints the table; ``truths`` computes them again.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from audit.as_log import as_log
from audit.engine import run
from audit.fleets import FLEETS, Fleet

from lbopt.studies.audit import AuditConfig, AuditOutcome, audit_log

NOISES = (0.05, 0.2, 0.5)
#: The engine's rules and lbopt's of the same meaning.
SAME = {
    "round-robin": "round-robin",
    "random": "random",
    "jsq": "jsq",
    "jsq-load": "jsq-load:admission=immediate",
    "lightest": "jsq-load",
    "fcfs": "fcfs",
}
#: Rules whose truth is known for each fleet.
JUDGED = ("round-robin", "jsq", "jsq-load", "lightest")
TRUTHS = Path(__file__).with_name("truths.csv")
_RUNS = 4


def noisy_fleets() -> dict[tuple[str, float], Fleet]:
    """Return the fleets by class and noise; requests differ from level to level."""
    found = {}
    for k, noise in enumerate(NOISES):
        for name, fleet in FLEETS.items():
            G, B = min(fleet.G, 16), min(fleet.B, 32)
            seed = fleet.seed + 1000 + 100 * (k + 1)
            found[name, noise] = replace(fleet, G=G, B=B, noise=noise, requests=3000 if G == 16 else 2000, seed=seed)
    return found


def compute_truths() -> None:
    """Serve each fleet under each rule, and write the mean times per token."""
    with TRUTHS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["fleet", "noise", "rule", *(f"tpot_{seed}" for seed in range(1, _RUNS + 1))])
        for (name, noise), fleet in noisy_fleets().items():
            for rule in dict.fromkeys((fleet.rule, *JUDGED)):
                tpot = [run(fleet, rule, seed).tpot for seed in range(1, _RUNS + 1)]
                rows.writerow([name, noise, rule, *(f"{value:.9g}" for value in tpot)])
            file.flush()


@dataclass(frozen=True, slots=True)
class Judged:
    """An interval of the change beside the truth.

    Parameters
    ----------
    fleet, noise, rule
        Which, the rule by the engine's name.
    interval
        What the audit says.
    truth
        The effect: mean over the engine's runs of both rules.
    recommended
        Whether the audit recommends this rule.
    """

    fleet: str
    noise: float
    rule: str
    interval: tuple[float, float]
    truth: float
    recommended: bool

    @property
    def covers(self) -> bool:
        """Whether the truth is inside."""
        return self.interval[0] <= self.truth <= self.interval[1]


def read_truths() -> dict[tuple[str, float], dict[str, float]]:
    """Return by fleet and noise the mean time per token of each rule, seconds."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    with TRUTHS.open(encoding="utf-8") as file:
        for name, noise, rule, *tpot in list(csv.reader(file))[1:]:
            found.setdefault((name, float(noise)), {})[rule] = float(np.mean([float(value) for value in tpot]))
    return found


def audited(fleet: Fleet) -> AuditOutcome:
    """Return the audit of what a fleet's own rule serves."""
    rules = tuple(SAME[rule] for rule in JUDGED)
    return audit_log(as_log(run(fleet)), AuditConfig(log="engine", rules=rules, slots=fleet.B, states=0))


def judged(name: str, noise: float, rule: str, tpot: dict[str, float], outcome: AuditOutcome) -> list[Judged]:
    """Return each rule's interval beside its truth.

    Parameters
    ----------
    rule
        The rule that wrote the log.
    tpot
        True time per token by rule.
    """
    runs = {run.rule: run for run in outcome.runs}
    return [
        Judged(
            name, noise, one, runs[SAME[one]].change_interval, tpot[one] / tpot[rule] - 1,
            outcome.recommendation.rule == SAME[one],
        )
        for one in JUDGED
        if SAME[one] in runs
    ]  # fmt: skip


def share(rows: Iterable[Judged]) -> str:
    """Return how many intervals cover."""
    rows = list(rows)
    return f"{sum(row.covers for row in rows)} of {len(rows)}"


def main(names: Iterable[str] = FLEETS) -> list[Judged]:
    """Print the table of coverage."""
    truths, found = read_truths(), list[Judged]()
    verdicts: Counter[tuple[float, str]] = Counter()
    for (name, noise), fleet in noisy_fleets().items():
        if name not in names:
            continue
        outcome = audited(fleet)
        best = outcome.recommendation
        verdicts[noise, best.verdict] += 1
        rows = judged(name, noise, fleet.rule, truths[name, noise], outcome)
        found += rows
        for row in rows:
            if not row.covers or row.recommended:
                low, high = (100 * end for end in row.interval)
                what = "recommended" if row.recommended else ""
                off = "" if row.covers else "MISSED"
                print(
                    f"# {name} {noise:.0%} {row.rule}: {low:+.1f} to {high:+.1f},"
                    f" true {100 * row.truth:+.1f} {what} {off}"
                )
        if best.verdict == "withheld":
            print(f"# {name} {noise:.0%}: {best}", flush=True)
    print("| noise a step | switch | stay | withheld | recommended: inside | every rule: inside | half-width, points |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for noise in NOISES:
        rows = [row for row in found if row.noise == noise]
        counts = " | ".join(str(verdicts[noise, verdict]) for verdict in ("switch", "stay", "withheld"))
        width = np.median([100 * (row.interval[1] - row.interval[0]) / 2 for row in rows]) if rows else float("nan")
        taken = [row for row in rows if row.recommended]
        print(f"| {noise:.0%} | {counts} | {share(taken)} | {share(rows)} | {width:.1f} |")
    return found


if __name__ == "__main__":
    if "truths" in sys.argv:
        compute_truths()
    else:
        main(sys.argv[1:] or FLEETS)
