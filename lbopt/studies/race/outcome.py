"""What a race found. Numbers only; how they look is the report's affair."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.studies.race.config import RaceConfig
from lbopt.studies.race.contradictions import Contradiction
from lbopt.studies.race.instances import RaceInstance
from lbopt.studies.race.profile import Bracket, median_ratio, quantile, ratios, share_within, times_of
from lbopt.studies.race.record import STATUSES, RaceRecord

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


@dataclass(slots=True, eq=False, repr=False)
class RaceOutcome(Displayed):
    """Everything that a race found; `records` has one entry for each instance and solver, instance by instance."""

    config: RaceConfig
    instances: list[RaceInstance]
    records: list[RaceRecord]
    contradictions: list[Contradiction]
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<RaceOutcome {len(self.instances)} instances, {len(self.config.solvers)} solvers>"

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

    def share_closed(self, solver: str, seconds: float, group: str = ALL_GROUPS, *, claims: bool = True) -> float:
        """Return the share of a solver's runs closed within so many seconds.

        Parameters
        ----------
        solver
            Name of the solver.
        seconds
            Time limit, seconds.
        group
            Group of instances.
        claims
            Whether optima that a solver only claims count.
        """
        records = [r for r in self.of(solver, group) if r.status != "missing"]
        return share_within(times_of(records, claims=claims), seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return the summaries as plain data; what is only bracketed has its two ends, an open one being null."""
        return {
            "configuration": self.config.to_dict(),
            "instances": len(self.instances),
            "interrupted": self.interrupted,
            "notes": self.notes,
            "contradictions": [asdict(one) for one in self.contradictions],
            "solvers": [
                {
                    "group": s.group,
                    "solver": s.solver,
                    "runs": s.runs,
                    **s.counts,
                    "median_seconds": _ends(s.median),
                    "p99_seconds": _ends(s.p99),
                    "largest_open_gap_tokens": s.largest_gap,
                    "largest_open_gap_share": s.largest_gap_share,
                    "best_found_share": s.best_found,
                }
                for s in self.summaries()
            ],
            "ratios": [
                {
                    "group": r.group,
                    "solver": r.solver,
                    "reference": self.config.base,
                    "pairs": r.pairs,
                    "neither_closed": r.undecided,
                    "median_ratio": _ends(r.median),
                }
                for r in self.ratio_summaries()
            ],
        }


def _ends(value: Bracket | None) -> list[float | None] | None:
    if value is None:
        return None
    return [value.low, value.high if math.isfinite(value.high) else None]
