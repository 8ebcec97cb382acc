"""What a race found. Numbers only; how they look is in `tables`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.benchmarks.race.config import RaceConfig
from tests.benchmarks.race.contradictions import Contradiction
from tests.benchmarks.race.instances import RaceInstance
from tests.benchmarks.race.profile import Bracket, median_ratio, quantile, ratios, times_of
from tests.benchmarks.race.record import STATUSES, RaceRecord

#: The group of everything.
ALL_GROUPS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverSummary:
    """One solver over the instances of one group.

    Times are to a proof or an unrefuted claim; open gaps are over runs with a placement and a bound that differ.
    `best_found` is the share of runs whose placement is as good as any known.
    """

    group: str
    solver: str
    runs: int
    counts: dict[str, int]
    median: Bracket | None
    p99: Bracket | None
    largest_gap: int | None
    largest_gap_share: float | None
    best_found: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioSummary:
    """Times of one solver over those of the reference, instance by instance, in one group."""

    group: str
    solver: str
    pairs: int
    undecided: int
    median: Bracket | None


@dataclass(slots=True, eq=False)
class RaceOutcome:
    """Everything that a race found; `records` has one entry for each instance and solver, instance by instance."""

    config: RaceConfig
    instances: list[RaceInstance]
    records: list[RaceRecord]
    contradictions: list[Contradiction]
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their first instance."""
        return list(dict.fromkeys(one.group for one in self.instances))

    def of(self, solver: str, group: str = ALL_GROUPS) -> list[RaceRecord]:
        """Return the records of one solver in one group (or in all), in the order of the instances."""
        return [r for r in self.records if r.solver == solver and group in (ALL_GROUPS, r.group)]

    def summaries(self) -> list[SolverSummary]:
        """Return one summary per group and solver, those over all groups last where there are several."""
        return [self._summary(group, solver) for group in self._shown() for solver in self.config.solvers]

    def ratio_summaries(self) -> list[RatioSummary]:
        """Return the ratios to the reference per group and other solver."""
        base = self.config.base
        return [
            self._ratio(group, solver) for group in self._shown() for solver in self.config.solvers if solver != base
        ]

    def ratios_to_base(self, solver: str, group: str) -> list[Bracket]:
        """Return time of `solver` / time of the reference for each pair of runs of which one was closed."""
        pairs = self._pairs(solver, group)
        limit = self.config.time_limit
        return ratios(times_of([one for one, _ in pairs]), times_of([other for _, other in pairs]), limit)

    def _shown(self) -> list[str]:
        return self.groups + ([ALL_GROUPS] if len(self.groups) > 1 else [])

    def _pairs(self, solver: str, group: str) -> list[tuple[RaceRecord, RaceRecord]]:
        both = zip(self.of(solver, group), self.of(self.config.base, group), strict=True)
        return [(one, other) for one, other in both if "missing" not in (one.status, other.status)]

    def _ratio(self, group: str, solver: str) -> RatioSummary:
        found = self.ratios_to_base(solver, group)
        pairs = len(self._pairs(solver, group))
        return RatioSummary(
            group=group, solver=solver, pairs=pairs, undecided=pairs - len(found), median=median_ratio(found)
        )

    def _summary(self, group: str, solver: str) -> SolverSummary:
        everything = self.of(solver, group)
        records = [r for r in everything if r.status != "missing"]
        best = self._best_values()
        times = times_of(records)
        open_runs = [r for r in records if not r.closed and r.gap]
        hits = [r.value is not None and r.value == best.get(r.digest) for r in records]
        return SolverSummary(
            group=group,
            solver=solver,
            runs=len(records),
            counts={status: sum(r.status == status for r in everything) for status in STATUSES},
            median=quantile(times, 0.5, self.config.time_limit),
            p99=quantile(times, 0.99, self.config.time_limit),
            largest_gap=max((r.gap for r in open_runs if r.gap is not None), default=None),
            largest_gap_share=max((r.gap_share for r in open_runs if r.gap_share is not None), default=None),
            best_found=sum(hits) / len(hits) if hits else math.nan,
        )

    def _best_values(self) -> dict[str, int]:
        best = {one.problem.digest: one.best for one in self.instances if one.best is not None}
        for record in self.records:
            if record.value is not None:
                best[record.digest] = min(best.get(record.digest, record.value), record.value)
        return best
