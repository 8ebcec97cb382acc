"""What a gap study of prefill batches found. Numbers only; how they look is the report's affair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.display import Displayed
from lbopt.prefill import PassTime
from lbopt.prefill.exact import Fill, Placement
from lbopt.prefill.exact.gap import AllocationGap
from lbopt.studies.batches.config import BatchesConfig
from lbopt.studies.batches.sampling import SampledBatch

ALL = "all"
_LAW = PassTime()


@dataclass(frozen=True, slots=True, eq=False)
class JudgedBatch:
    """A batch, its two optima as far as they are known, and every rule's answer."""

    state: SampledBatch
    placement: Placement
    fill: Fill
    rules: tuple[AllocationGap, ...]

    @property
    def straggler_standing(self) -> str:
        """How sure the least straggler is: "proved", "claimed" by a solver, or "open" (unchecked searches too)."""
        return _standing(self.placement.optimal, self.placement.proof)

    @property
    def fill_standing(self) -> str:
        """How sure the fullest pass is; what exceeds the chunks plays no part."""
        return _standing(self.fill.filled == self.fill.bounds[0], self.fill.proof)

    def straggler_gap(self, rule: AllocationGap) -> float:
        """How much longer the fullest unit is than it has to be, as a share of the least."""
        least = self.placement.straggler
        return (rule.straggler - least) / max(1, least)

    def seconds_lost(self, rule: AllocationGap) -> float:
        """By how many seconds of passes the batch takes longer than it has to."""
        chunk = self.state.batch.chunk
        return seconds_until_done(rule.straggler, chunk) - seconds_until_done(self.placement.straggler, chunk)

    def fill_gap(self, rule: AllocationGap) -> float:
        """Share of the chunks of all units that could be filled and is not."""
        return (self.fill.filled - rule.filled) / (self.state.batch.num_units * self.state.batch.chunk)


def seconds_until_done(tokens: int, chunk: int) -> float:
    """Return the seconds of passes in which the fullest unit computes `tokens`, up to `chunk` in each."""
    whole, rest = divmod(tokens, chunk)
    return whole * _LAW.seconds(chunk) + (_LAW.seconds(rest) if rest else 0.0)


@dataclass(frozen=True, slots=True)
class BatchGap:
    """How far one rule is from the optima, over the batches of one behaviour (or of "all").

    `proved`: both optima proved; `claimed`: both known, one of them at least by a solver's word. Optima that are open
    enter no average: each is over the batches in which that optimum is known.
    """

    behaviour: str
    rule: str
    batches: int
    proved: int
    claimed: int
    straggler_open: int
    fill_open: int
    straggler_gap_mean_share: float
    straggler_gap_p95_share: float
    straggler_gap_max_share: float
    straggler_optimal_share: float
    seconds_lost_mean: float
    fill_gap_mean_share: float
    fill_gap_max_share: float
    overshoot_mean_tokens: float


@dataclass(slots=True, eq=False, repr=False)
class BatchesOutcome(Displayed):
    """Everything a gap study of prefill batches found."""

    config: BatchesConfig
    trace: dict[str, Any]
    judged: list[JudgedBatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<BatchesOutcome {self.trace.get('name')}: {len(self.config.rules)} rules, {len(self.judged)} batches>"

    def rows(self) -> list[BatchGap]:
        """Return a row per rule over all batches, then per behaviour where there are several."""
        behaviours = list(dict.fromkeys(one.state.behaviour for one in self.judged))
        groups = [ALL, *behaviours] if len(behaviours) > 1 else behaviours
        return [self.row(rule, behaviour) for behaviour in groups for rule in self.config.rules]

    def row(self, rule: str, behaviour: str = ALL) -> BatchGap:
        """Return one line of the gap table."""
        judged = [one for one in self.judged if behaviour in (ALL, one.state.behaviour)]
        answers = [(one, next(r for r in one.rules if r.rule == rule)) for one in judged]
        both = [(one.straggler_standing, one.fill_standing) for one in judged]
        placed = [pair for pair in answers if pair[0].straggler_standing != "open"]
        filled = [pair for pair in answers if pair[0].fill_standing != "open"]
        gaps = np.array([one.straggler_gap(r) for one, r in placed])
        fills = np.array([one.fill_gap(r) for one, r in filled])
        proved = both.count(("proved", "proved"))
        return BatchGap(
            behaviour=behaviour,
            rule=rule,
            batches=len(judged),
            proved=proved,
            claimed=sum("open" not in pair for pair in both) - proved,
            straggler_open=len(answers) - len(placed),
            fill_open=len(answers) - len(filled),
            straggler_gap_mean_share=float(gaps.mean()) if placed else np.nan,
            straggler_gap_p95_share=float(np.quantile(gaps, 0.95)) if placed else np.nan,
            straggler_gap_max_share=float(gaps.max()) if placed else np.nan,
            straggler_optimal_share=float((gaps == 0).mean()) if placed else np.nan,
            seconds_lost_mean=float(np.mean([one.seconds_lost(r) for one, r in placed])) if placed else np.nan,
            fill_gap_mean_share=float(fills.mean()) if filled else np.nan,
            fill_gap_max_share=float(fills.max()) if filled else np.nan,
            overshoot_mean_tokens=float(np.mean([r.overshoot for _, r in filled])) if filled else np.nan,
        )


def _standing(closed: bool, proof: str) -> str:
    if not closed or proof == "search":
        return "open"
    return "claimed" if proof.startswith("claimed:") else "proved"
