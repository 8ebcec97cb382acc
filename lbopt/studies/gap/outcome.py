"""What a gap study found: solved states, long runs of each policy over the same requests, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Trace, barrier_total
from lbopt.policies import Policy
from lbopt.simulator import Run, SampledState, SimulationSetting, simulate
from lbopt.solvers import Result
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.grid import Row
from lbopt.studies.study import Outcome

if TYPE_CHECKING:
    from lbopt.studies.gap.config import GapConfig

#: Columns and fields of a gap study that measure the machine and the moment.
TIMINGS = ("microseconds_per_decision", "simulation_seconds", "seconds")

#: How sure an optimum is. "searched": lbopt's search says so, and its proof was not checked. "claimed": a solver says
#: so, and it was not checked otherwise. "open": bound below the best value.
Standing = Literal["proved", "searched", "claimed", "open"]
STANDINGS: tuple[Standing, ...] = ("proved", "searched", "claimed", "open")


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What one policy made of one state: imbalance in tokens, the wall time of the decision where it was timed, and the
    barrier after it (ns), see `decisions.barrier_after`.
    """

    objective: int
    seconds: float | None
    barrier: int = 0


@dataclass(slots=True, eq=False)
class SolvedState:
    """A state, its best known placement, and every policy's decision of it by name."""

    state: SampledState
    result: Result
    decisions: dict[str, Decision] = field(default_factory=dict)

    @property
    def standing(self) -> Standing:
        """How sure the optimum is. A decision below an optimum that is not proved refutes it."""
        if self.result.proved:
            return "proved"
        if self.result.status != "optimal" or any(d.objective < self.best for d in self.decisions.values()):
            return "open"
        return "searched" if self.result.proof == "search" else "claimed"

    @property
    def best(self) -> int:
        """The best known imbalance, tokens."""
        assert self.result.objective is not None, "solve starts from a greedy placement"
        return self.result.objective

    @property
    def barrier(self) -> int:
        """G * M after the best known placement, tokens."""
        assert self.result.assignment is not None, "solve starts from a greedy placement"
        return barrier_total(self.state.problem, self.result.assignment)


class PolicyGap(Row):
    """How far one policy's decisions are from the optimum, over the states of one behaviour (or of "all").

    Gaps are tokens of imbalance above the optimum, averaged over the states that are not open; `share` relates
    them to G * M, the work the fleet could do up to the barrier of the optimal placement. The barrier in seconds is
    that of the decisions themselves, averaged over the same states. States that are left open are harder than others,
    so that this average favours easy ones; the mean gap over all states is from `gap_mean_low_tokens` (the optimum of
    an open state is the best value known) to `gap_mean_high_tokens` (it is the bound).
    """


class LongRun(Row):
    """One policy over the requests of one seed: `policy`, `admission`, `seed`, `steps`, `seconds`, `metrics`, `tally`.

    `imbalance_course` is the read imbalance over the window, averaged in up to 400 equal stretches, for the picture;
    None but for the first seed.
    """


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one policy over all seeds, and its paired difference to the baseline."""

    policy: str
    metric: str
    value: MeanOverSeeds
    difference: MeanOverSeeds


@dataclass(slots=True, eq=False, repr=False)
class GapOutcome(Outcome):
    """Everything a gap study found."""

    config: GapConfig
    trace: dict[str, Any]
    solved: list[SolvedState] = field(default_factory=list)
    long_runs: list[LongRun] = field(default_factory=list)

    def __repr__(self) -> str:
        standings = ", ".join(f"{self.count(name)} {name}" for name in STANDINGS if self.count(name))
        return (
            f"<GapOutcome {self.trace.get('name', self.config.problems)}: {len(self.config.policies)} policies, "
            f"{len(self.solved)} states ({standings or 'none'}), {len(self.long_runs)} long runs>"
        )

    def count(self, standing: Standing) -> int:
        """Return the number of states of that standing."""
        return sum(s.standing == standing for s in self.solved)


_COURSE_POINTS = 400

#: Metrics that are compared, in the order of the table.
COMPARED = (
    "imbalance_tokens",
    "spread_tokens",
    "throughput_tokens_per_second",
    "whole_run_tokens_per_second",
    "whole_run_share_of_ceiling",
    "slo_share",
    "goodput_tokens_per_second",
    "tpot_mean_seconds",
    "tpot_p50_seconds",
    "tpot_p95_seconds",
    "tpot_p99_seconds",
    "waiting_mean_steps",
    "waiting_p99_steps",
    "waiting_max_steps",
    "first_token_mean_seconds",
    "idle_share",
    "energy_joules",
    "mean_load_tokens",
    "occupancy",
    "real_choice_share",
    "over_capacity_share",
)


def long_run(
    policy: Policy,
    requests: Trace,
    training: Trace | None,
    setting: SimulationSetting,
    seed: int,
    *,
    with_course: bool = False,
) -> LongRun:
    """Run one policy over the requests of one seed.

    Parameters
    ----------
    requests, training
        The requests, and those that its predictor learns from; None where there are none.
    with_course
        Whether to keep the course of the imbalance, for the picture.
    """
    run = simulate(requests, policy, setting, seed=seed, training=training)
    return LongRun(
        policy=policy.name,
        admission=policy.admission,
        seed=seed,
        steps=run.num_steps,
        seconds=run.seconds,
        metrics=run.metrics(),
        tally=run.tally,
        imbalance_course=_course(run, setting.fleet.num_workers) if with_course else None,
    )


def compare(runs: Sequence[LongRun], baseline: str) -> list[Comparison]:
    """Return every compared metric of every policy with its paired difference to `baseline`, seed by seed."""
    by_policy: dict[str, dict[int, LongRun]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, {})[run.seed] = run
    reference = by_policy.get(baseline, {})
    rows = []
    for policy, by_seed in by_policy.items():
        seeds = [seed for seed in by_seed if seed in reference]
        if not seeds:
            continue
        for metric in COMPARED:
            if getattr(by_seed[seeds[0]].metrics, metric) is None:
                continue  # no limits are set
            own = [float(getattr(by_seed[seed].metrics, metric)) for seed in seeds]
            other = [float(getattr(reference[seed].metrics, metric)) for seed in seeds]
            differences = [a - b for a, b in zip(own, other, strict=True)]
            rows.append(Comparison(policy, metric, over_seeds(own), over_seeds(differences)))
    return rows


def _course(run: Run, num_workers: int) -> NDArray[np.float64]:
    rows = run.window.rows
    imbalance = num_workers * run.steps["read_max"][rows] - run.steps["read_sum"][rows]
    stretches = np.array_split(imbalance, min(_COURSE_POINTS, imbalance.size))
    return np.array([stretch.mean() for stretch in stretches])
