"""One verdict on a printed figure, from its ends and the 95 % interval of ours; both sides are treated alike.

    agrees       our whole interval lies between the printed ends
    weaker       it lies wholly outside, between no effect and the printed effect: the effect is there, and smaller
    stronger     it lies wholly outside, beyond the printed effect
    differs      it lies wholly outside, and holds no effect, or lies on the other side of it, or is of a level
    undecided    it holds a printed end, so it lies neither wholly inside nor wholly outside; or there is no interval

Agreement has to be shown as much as difference. If the mean alone decided on agreement, and the interval alone on
difference, then a noisy run could agree and never differ: noise would speak for agreement. Here a wider interval can
only lead to *undecided*. This is the two one-sided tests of equivalence (Schuirmann 1987) beside the usual test of
difference, at the same level: where the truth lies on a printed end, each of the two sides is named wrongly in at most
2.5 % of the studies.

`lbopt.studies.printed` says where the ends come from. A statement that only names a side ("worse", "no regression") is
a range that is open on that side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lbopt.statistics import Interval, MeanOverSeeds, over_seeds
from lbopt.studies.printed import Printed

VERDICTS = ("agrees", "undecided", "weaker", "stronger", "differs")

#: The verdicts in the caption of a table.
VERDICTS_SAID = (
    "Agrees: all of our interval is between the printed ends. Undecided: it holds one of them. Outside of both: weaker "
    "(a smaller effect on the same side), stronger (a larger one), differs (no effect, one on the other side, or "
    "another level). The ends of a single printed number are 30 % away, those of a share at 1.3 times the odds."
)


class Asks(Protocol):
    """What a study computes beside a printed figure."""

    @property
    def printed(self) -> Printed:
        """The figure."""


Question = TypeVar("Question", bound=Asks, covariant=True)


@dataclass(frozen=True, slots=True)
class Judged(Generic[Question]):
    """A question with our values, one a seed."""

    question: Question
    values: tuple[float, ...]

    @property
    def ours(self) -> MeanOverSeeds:
        """The mean over seeds with its 95 % interval."""
        return over_seeds(self.values)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        return verdict(interval_of(self.values, single_run=self.question.printed.single_run), self.question.printed)


def interval_of(values: Sequence[float], *, exact: bool = False, single_run: bool = False) -> Interval | None:
    """Return the interval that is compared with the printed ends; None for one value with noise.

    Parameters
    ----------
    exact
        Whether the values have no noise: the interval is then their mean alone.
    single_run
        Whether to return where 95 % of single runs lie, mean ± t s sqrt(1 + 1/n), instead of the interval of the mean.
    """
    found = over_seeds(values)
    if exact:
        return found.mean, found.mean
    if found.low is None or found.high is None:
        return None
    if single_run:
        half = (found.high - found.low) / 2 * math.sqrt(len(values) + 1)
        return found.mean - half, found.mean + half
    return found.low, found.high


def verdict(ours: Interval | None, printed: Printed) -> str:
    """Return one of `VERDICTS` for an interval of ours."""
    if ours is None:
        return "undecided"
    low, high = ours
    if printed.low <= low and high <= printed.high:
        return "agrees"
    if low <= printed.high and printed.low <= high:
        return "undecided"
    nothing = printed.nothing
    if nothing is not None and printed.low >= nothing and low > nothing:
        return "weaker" if high < printed.low else "stronger"
    if nothing is not None and printed.high <= nothing and high < nothing:
        return "weaker" if low > printed.high else "stronger"
    return "differs"
