"""What a gap study found. Numbers only; how they look is the report's affair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.display import Displayed
from lbopt.model import barrier_total
from lbopt.simulator import Metrics, SampledState
from lbopt.solvers import Result
from lbopt.statistics import MeanOverSeeds

if TYPE_CHECKING:
    from lbopt.studies.gap.config import GapConfig

#: Columns and fields of a gap study that measure the machine and the moment.
TIMINGS = ("microseconds_per_decision", "simulation_seconds", "seconds")

#: How sure an optimum is. "searched": lbopt's search says so, and its proof was not checked. "claimed": a solver says
#: so, nobody else has checked. "open": bound below the best value.
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


@dataclass(frozen=True, slots=True)
class PolicyGap:
    """How far one policy's decisions are from the optimum, over the states of one behaviour (or of "all").

    Gaps are tokens of imbalance above the optimum, averaged over the states that are not open; `share` relates
    them to G * M, the work the fleet could do up to the barrier of the optimal placement. The barrier in seconds is
    that of the decisions themselves, averaged over the same states. States that are left open are harder than others,
    so that this average favours easy ones; the mean gap over all states is from `gap_mean_low_tokens` (the optimum of
    an open state is the best value known) to `gap_mean_high_tokens` (it is the bound).
    """

    behaviour: str
    policy: str
    states: int
    proved: int
    searched: int
    claimed: int
    open: int
    gap_mean_tokens: float
    gap_mean_low_tokens: float
    gap_mean_high_tokens: float
    gap_median_tokens: float
    gap_p95_tokens: float
    gap_max_tokens: float
    gap_mean_share: float
    optimal_share: float
    barrier_mean_seconds: float
    microseconds_per_decision: float


@dataclass(frozen=True, slots=True, eq=False)
class LongRun:
    """One policy over the requests of one seed."""

    policy: str
    admission: str
    seed: int
    steps: int
    seconds: float
    metrics: Metrics
    tally: dict[str, int]
    #: read imbalance over the window, averaged in up to 400 equal stretches, for the picture (first seed only)
    imbalance_course: NDArray[np.float64] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one policy over all seeds, and its paired difference to the baseline."""

    policy: str
    metric: str
    value: MeanOverSeeds
    difference: MeanOverSeeds


@dataclass(slots=True, eq=False, repr=False)
class GapOutcome(Displayed):
    """Everything a gap study found."""

    config: GapConfig
    trace: dict[str, Any]
    solved: list[SolvedState] = field(default_factory=list)
    long_runs: list[LongRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        standings = ", ".join(f"{self.count(name)} {name}" for name in STANDINGS if self.count(name))
        return (
            f"<GapOutcome {self.trace.get('name', self.config.problems)}: {len(self.config.policies)} policies, "
            f"{len(self.solved)} states ({standings or 'none'}), {len(self.long_runs)} long runs>"
        )

    def count(self, standing: Standing) -> int:
        """Return the number of states of that standing."""
        return sum(s.standing == standing for s in self.solved)
