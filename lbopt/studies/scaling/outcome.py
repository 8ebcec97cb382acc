"""What a scaling study measured, beside what theory computes for the same fleets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.display import Displayed
from lbopt.studies.scaling.config import ScalingConfig
from lbopt.studies.scaling.fit import Exponents, fit_exponents
from lbopt.studies.scaling.fleet import FleetTheory
from lbopt.theory.chains.batch_means import ChainMean, batch_steps, chain_mean

#: How the decisions of a solver-backed rule may stand.
STANDINGS = ("proved", "claimed", "open", "searched")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingCell:
    """One rule on one fleet.

    Parameters
    ----------
    policy
        The rule.
    fleet
        What theory says of the fleet.
    batches
        Batch means of the imbalance, tokens.
    mean
        Their mean with its error.
    admitted_prompt
        Mean prompt of admitted requests, tokens: the exact rule prefers long ones.
    wait_mean, wait_max
        Steps in the pool; None for the replete pool, in which nobody waits.
    tally
        Decisions of a solver-backed rule by how they stand: proved, claimed, open.
    """

    policy: str
    fleet: FleetTheory
    batches: tuple[float, ...]
    mean: ChainMean
    admitted_prompt: float
    wait_mean: float | None
    wait_max: int | None
    tally: dict[str, int]

    @classmethod
    def of(cls, policy: str, fleet: FleetTheory, answer: dict[str, Any]) -> ScalingCell:
        """Read what the task returned."""
        batches = np.asarray(answer["batches"], np.float64)
        return cls(
            policy=policy,
            fleet=fleet,
            batches=tuple(answer["batches"]),
            mean=chain_mean(batches, batch_steps(fleet.p)),
            admitted_prompt=answer["admitted_prompt"],
            wait_mean=answer.get("wait_mean"),
            wait_max=answer.get("wait_max"),
            tally=answer["tally"],
        )

    @property
    def improvement(self) -> float:
        """FCFS's exact imbalance over the rule's; infinite where nothing is left."""
        return self.fleet.fcfs / self.mean.mean if self.mean.mean > 0 else math.inf

    @property
    def closed_share(self) -> float | None:
        """Share of the decisions that were proved, or called optimal by the search; None for rules without a search."""
        total = sum(self.tally.get(one, 0) for one in STANDINGS)
        return (self.tally.get("proved", 0) + self.tally.get("searched", 0)) / total if total else None


@dataclass(slots=True, repr=False)
class ScalingOutcome(Displayed):
    """All cells of a study."""

    config: ScalingConfig
    cells: list[ScalingCell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<ScalingOutcome {len(self.config.policies)} policies, {len(self.cells)} cells>"

    def of(self, policy: str) -> list[ScalingCell]:
        """Return the cells of a rule, in the order of the fleets."""
        return [cell for cell in self.cells if cell.policy == policy]

    def exponents(self) -> dict[str, Exponents | None]:
        """Fit every rule, and beside them FCFS's exact law on the same grid, as "fcfs, exact law"."""
        found = {}
        for policy in self.config.policies:
            cells = self.of(policy)
            found[policy] = fit_exponents([(one.fleet.G, one.fleet.B, one.batches) for one in cells])
        fleets = {(one.fleet.G, one.fleet.B): one.fleet for one in self.cells}
        found["fcfs, exact law"] = fit_exponents([(G, B, [fleet.fcfs]) for (G, B), fleet in fleets.items()])
        return found
