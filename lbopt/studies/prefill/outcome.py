"""What every rule did."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from lbopt.display import Displayed
from lbopt.prefill import PrefillMetrics, PrefillRequests, PrefillRun
from lbopt.studies.prefill.config import PrefillConfig, Rule


@dataclass(frozen=True, slots=True)
class RuleRun:
    """One rule's run."""

    rule: Rule
    run: PrefillRun
    metrics: PrefillMetrics


@dataclass(slots=True, repr=False)
class PrefillOutcome(Displayed):
    """All rules that have ended, in the order in which they were asked for.

    `saturation` is in requests a second, infinite without a chunk.
    """

    config: PrefillConfig
    traffic: PrefillRequests
    saturation: float
    runs: list[RuleRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"<PrefillOutcome {self.traffic.name}: {len(self.traffic):,} prompts, {len(self.runs)} rules>"

    @property
    def rate(self) -> float:
        """Requests a second that came, between the first and the last; infinite where all came at one time."""
        span = float(self.traffic.arrival[-1] - self.traffic.arrival[0])
        return (len(self.traffic) - 1) / span if span > 0 else math.inf
