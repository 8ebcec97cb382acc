"""What a misprediction study found: one line per rule and forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lbopt.statistics import MeanOverSeeds
from lbopt.studies.gap import LongRun, PolicyGap, SolvedState
from lbopt.studies.gap.decisions import summarise
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.misprediction.config import MispredictionConfig
from lbopt.studies.misprediction.forecasts import EXACT, MYOPIC, NO_WINDOW, Case, cases_of

#: Metrics of the long runs that are compared.
METRICS = ("imbalance_tokens", "throughput_tokens_per_second", "tpot_mean_seconds", "waiting_max_steps")


@dataclass(frozen=True, slots=True)
class LongRunCost:
    """One metric over the seeds, and its paired differences: to the same rule with the exact forecast and without a
    window, and to br-0; None where no seed has both.
    """

    value: MeanOverSeeds
    to_exact: MeanOverSeeds | None
    to_no_window: MeanOverSeeds | None
    to_myopic: MeanOverSeeds | None


@dataclass(frozen=True, slots=True)
class ForecastCost:
    """What one rule makes of one forecast.

    Parameters
    ----------
    case
        Rule and forecast.
    gap
        Its distance to the optimum of the frozen states; None where it decided none.
    seeds
        Seeds of its long runs.
    metrics
        By name from `METRICS`; empty where there is no long run.
    """

    case: Case
    gap: PolicyGap | None
    seeds: int
    metrics: dict[str, LongRunCost]


@dataclass(slots=True, eq=False)
class MispredictionOutcome:
    """Everything a misprediction study found.

    Parameters
    ----------
    config
        What was asked.
    trace
        Name, digest and number of the requests of the first seed.
    solved
        States with their optima and the decisions by the names of the cases.
    long_runs
        One per case and seed, `policy` being the name of the case.
    notes
        What a reader has to know besides.
    interrupted
        Whether somebody ended the study early.
    seconds
        Time it took.
    """

    config: MispredictionConfig
    trace: dict[str, Any]
    solved: list[SolvedState] = field(default_factory=list)
    long_runs: list[LongRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def costs(self) -> list[ForecastCost]:
        """Return one line per case that decided a state or ran."""
        cases = cases_of(self.config)
        to_myopic = _differences(self.long_runs, MYOPIC)
        to_exact: dict[tuple[str, str], MeanOverSeeds] = {}
        to_no_window: dict[tuple[str, str], MeanOverSeeds] = {}
        for rule in self.config.rules:
            own = [run for run in self.long_runs if run.policy.startswith(f"{rule.name} | ")]
            to_exact |= _differences(own, f"{rule.name} | {EXACT}")
            to_no_window |= _differences(own, f"{rule.name} | {NO_WINDOW}")
        values: dict[str, dict[str, MeanOverSeeds]] = {}
        seeds: dict[str, int] = {}
        for case in cases:
            own = [run for run in self.long_runs if run.policy == case.name]
            seeds[case.name] = len(own)
            values[case.name] = {c.metric: c.value for c in compare(own, case.name)}
        found = []
        for case in cases:
            gap = summarise(self.solved, case.name)
            metrics = {
                name: LongRunCost(
                    values[case.name][name],
                    to_exact.get((case.name, name)),
                    to_no_window.get((case.name, name)),
                    to_myopic.get((case.name, name)),
                )
                for name in METRICS
                if values[case.name]
            }
            if gap.states or metrics:
                found.append(ForecastCost(case, gap if gap.states else None, seeds[case.name], metrics))
        return found


def _differences(runs: Sequence[LongRun], baseline: str) -> dict[tuple[str, str], MeanOverSeeds]:
    """Return the paired differences to `baseline` by policy and metric; none to itself."""
    found = compare(runs, baseline)
    return {(c.policy, c.metric): c.difference for c in found if c.policy != baseline}
