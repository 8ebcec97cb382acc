"""A printed statement beside ours, and what we say of it.

A range spans models and workloads there; ours is one model. Verdicts:

    agrees          our mean over worlds is inside the printed range; where an end is 0, or the only one, our whole 95 %
                    interval is on its side
    undecided       it is not, and its interval reaches into the range, or there is one world and no interval
    weaker          neither, and its interval lies on the printed side of nothing: the effect is there, and smaller
    stronger        the same, and larger than printed
    differs         none of these

A single printed number stands for a range of 30 % around it: it is of one run on another machine. Statements of order
("worse at tau = 0") are ranges that are open on one side. What the workload was calibrated to is marked: that it agrees
says nothing. The best balancer is the best of four in each world, at each rate and for each quantity, as in the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lbopt.studies.intervals import MeanOverSeeds, over_seeds
from lbopt.studies.locality.plan import PlannedRun

VERDICTS = ("agrees", "undecided", "weaker", "stronger", "differs")


#: What one world answered, and the rates of the study.
Answer = dict[str, Any]
Figure = Callable[[Answer, tuple[float, ...]], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """One printed statement.

    Parameters
    ----------
    item
        The item of the study whose runs it needs.
    workload
        "task" or "language".
    quantity, unit
        What it is about.
    low, high
        The printed range; infinite where it is open.
    printed
        As the source has it.
    figure
        From the answer of one world to our value; None where the world cannot tell.
    calibrated
        Whether the workload was made to meet it.
    """

    item: str
    workload: str
    quantity: str
    unit: str
    low: float
    high: float
    printed: str
    figure: Figure
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with our values, one a world."""

    claim: Claim
    values: tuple[float, ...]

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over worlds with its 95 % interval."""
        return over_seeds(self.values)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        ours, claim = self.ours, self.claim
        if ours.low is None or ours.high is None:
            return "undecided"
        low, high = ours.low, ours.high
        above = (low if _of_sign(claim.low, claim.high) else ours.mean) >= claim.low
        below = (high if _of_sign(claim.high, claim.low) else ours.mean) <= claim.high
        if above and below:
            return "agrees"
        if low <= claim.high and high >= claim.low:
            return "undecided"
        if (claim.high <= 0 and high < 0) or (claim.low >= 0 and low > 0):
            beyond = ours.mean < claim.low if high < 0 else ours.mean > claim.high
            return "stronger" if beyond else "weaker"
        return "differs"


def _of_sign(end: float, other: float) -> bool:
    """Return whether to be beyond `end` is all that a range says, its other end being open, or a matter of sign."""
    return end == 0 or math.isinf(other)


def change(answer: Answer, run: PlannedRun, of: str, base: str = "round-robin") -> float | None:
    """Return by how many percent a run's `of` exceeds that of the rule `base` in the same place."""
    runs = answer["runs"]
    other = PlannedRun(run.fleet, run.workers, run.rate, base)
    if run.key not in runs or other.key not in runs:
        return None
    return 100 * (float(runs[run.key][of]) / float(runs[other.key][of]) - 1)
