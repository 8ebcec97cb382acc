"""What we say of a printed range when we have a mean and its interval.

    agrees          our mean is inside the printed range; where an end is 0, or the only one, our whole 95 % interval is
                    on its side
    undecided       it is not, and its interval reaches into the range, or there is one seed and no interval
    weaker          neither, and its interval lies on the printed side of nothing: the effect is there, and smaller
    stronger        the same, and larger than printed
    differs         none of these

Statements of order ("worse than the other") are ranges that are open on one side. A single printed number stands for a
range of 30 % around it (`around`): it is of one run on another machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lbopt.statistics import MeanOverSeeds, over_seeds

#: Around a single printed number.
ALIKE = 0.3

VERDICTS = ("agrees", "undecided", "weaker", "stronger", "differs")


class Printed(Protocol):
    """A statement with the range that was printed of it, infinite where it is open."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


Statement = TypeVar("Statement", bound=Printed)


@dataclass(frozen=True, slots=True)
class Judged(Generic[Statement]):
    """A claim with our values, one a seed."""

    claim: Statement
    values: tuple[float, ...]

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over seeds with its 95 % interval."""
        return over_seeds(self.values)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        return verdict(self.ours, self.claim.low, self.claim.high)


def around(value: float) -> tuple[float, float]:
    """Return the range that a single printed number stands for."""
    low, high = sorted((value * (1 - ALIKE), value * (1 + ALIKE)))
    return low, high


def verdict(ours: MeanOverSeeds, lowest: float, highest: float) -> str:
    """Return one of `VERDICTS` for the printed range; infinite where it is open."""
    if ours.low is None or ours.high is None:
        return "undecided"
    low, high = ours.low, ours.high
    above = (low if _of_sign(lowest, highest) else ours.mean) >= lowest
    below = (high if _of_sign(highest, lowest) else ours.mean) <= highest
    if above and below:
        return "agrees"
    if low <= highest and high >= lowest:
        return "undecided"
    if (highest <= 0 and high < 0) or (lowest >= 0 and low > 0):
        beyond = ours.mean < lowest if high < 0 else ours.mean > highest
        return "stronger" if beyond else "weaker"
    return "differs"


def _of_sign(end: float, other: float) -> bool:
    """Return whether to be beyond `end` is all that a range says, its other end being open, or a matter of sign."""
    return end == 0 or math.isinf(other)
