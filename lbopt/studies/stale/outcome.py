"""What a study of old sight measured, beside what the law says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.studies.stale.config import StaleConfig
from lbopt.studies.stale.forecast import added

#: Below this share of busy slots a pool that sees reports starts requests in bursts: reports are a life apart.
_SEEN = 0.63


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleCell:
    """One rule on one fleet with one age of reports.

    Parameters
    ----------
    policy
        The rule.
    G
        Number of workers.
    period
        Seconds between reports; None = the truth.
    imbalance, mean_load
        Tokens: mean imbalance, and tokens of a worker.
    occupancy
        Share of the slots that are busy.
    first_token_p99, tpot_p99
        Seconds: to the first token, and a token.
    tokens_per_second
        Of the fleet.
    step_seconds, running
        Mean length of a step; requests that run on a worker.
    admission
        "pooled" or "immediate".
    floor, alike, random, even
        Tokens: the law's floor of any rule at this age, and of a rule that keeps workers alike; the level of a random
        split, and of even arrivals, unseen.
    seen
        The law's share of busy slots where they are filled at reports alone.
    """

    policy: str
    G: int
    period: float | None
    imbalance: float
    mean_load: float
    occupancy: float
    first_token_p99: float
    tpot_p99: float
    tokens_per_second: float
    step_seconds: float
    running: float
    admission: str
    floor: float
    alike: float
    random: float
    even: float
    seen: float

    @property
    def bursts(self) -> bool:
        """Whether the rule starts requests in bursts at reports, which the law of even arrivals does not speak of.

        A rule with a pool starts nothing between reports. That shows where a slot is free for a good part of its time.
        """
        return self.admission == "pooled" and self.seen < _SEEN

    @property
    def period_steps(self) -> float:
        """Steps between reports; 0 for the truth."""
        return 0.0 if self.period is None else self.period / self.step_seconds


@dataclass(slots=True, repr=False)
class StaleOutcome(Displayed):
    """All cells of a study."""

    config: StaleConfig
    cells: list[StaleCell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        rules = "1 rule" if len(self.config.policies) == 1 else f"{len(self.config.policies)} rules"
        workers = ", ".join(f"{G}" for G in self.config.workers[:6])
        return f"<StaleOutcome {rules} at {len(self.config.periods)} ages, G = {workers}: {len(self.cells)} runs>"

    def of(self, G: int, policy: str) -> list[StaleCell]:
        """Return the cells of a rule on a fleet, the truth first."""
        return [cell for cell in self.cells if cell.G == G and cell.policy == policy]

    def floor(self, cell: StaleCell) -> float | None:
        """Return the law's floor of any rule, tokens; None where it says nothing.

        That is in bursts, and where slots are never free.
        """
        return None if cell.bursts or self.config.load is None else cell.floor

    def alike(self, cell: StaleCell) -> float | None:
        """Return what workers alike leave by the law, tokens; None where it says nothing."""
        return None if self.floor(cell) is None else cell.alike

    def forecast(self, cell: StaleCell) -> float | None:
        """Return what the law makes of the rule's imbalance by true sight, tokens; None where it says nothing."""
        alike = self.alike(cell)
        fresh = next((one for one in self.of(cell.G, cell.policy) if one.period is None), None)
        counts = self.config.sight == "counts" or cell.admission == "pooled"
        return None if fresh is None or alike is None or not counts else added(fresh.imbalance, alike, cell.even)


def cell_of(policy: str, G: int, period: float | None, answer: dict[str, Any]) -> StaleCell:
    """Read what the task returned.

    Parameters
    ----------
    policy
        The rule.
    G
        Number of workers.
    period
        Seconds between reports; None = the truth.
    answer
        Of the task.
    """
    return StaleCell(policy=policy, G=G, period=period, **answer)
