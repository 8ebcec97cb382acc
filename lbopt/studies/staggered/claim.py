"""A printed statement beside ours, each held against one baseline and for one reading of staggered dispatch.

A single printed number stands for a range of 30 % around it: it is of one run on another machine, with other requests.
What the verdicts mean is in `lbopt.studies.verdict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbopt.studies.intervals import MeanOverSeeds, over_seeds
from lbopt.studies.staggered.rows import Rows
from lbopt.studies.verdict import verdict

#: Around a single printed number.
ALIKE = 0.3

#: From the rows of one seed to our value.
Figure = Callable[[Rows], float | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """One printed statement.

    Parameters
    ----------
    item
        The item of the study whose rows it needs.
    quantity, unit
        What it is about.
    low, high
        The printed range; infinite where it is open.
    printed
        As the source has it.
    rule
        The contender that is to have the gain; empty where the statement is of the baseline alone.
    against
        The baseline.
    figure
        Our value of one seed; None where the seed cannot tell.
    """

    item: str
    quantity: str
    unit: str
    low: float
    high: float
    printed: str
    rule: str
    against: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with our values, one a seed."""

    claim: Claim
    values: tuple[float, ...]

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over seeds with its 95 % interval."""
        return over_seeds(self.values)

    @property
    def verdict(self) -> str:
        """What `lbopt.studies.verdict` says of them."""
        return verdict(self.ours, self.claim.low, self.claim.high)


def around(value: float) -> tuple[float, float]:
    """Return the range that a single printed number stands for."""
    low, high = sorted((value * (1 - ALIKE), value * (1 + ALIKE)))
    return low, high
