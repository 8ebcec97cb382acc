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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lbopt.statistics import Interval, MeanOverSeeds, over_seeds
from lbopt.studies.printed import Printed

VERDICTS = ("agrees", "undecided", "weaker", "stronger", "differs")

#: The verdicts in the caption of a table.
VERDICTS_SAID = (
    "Agrees: all of our interval is between the printed ends. Undecided: it holds one of them. Outside of both: weaker "
    "(a smaller effect on the same side), stronger (a larger one), differs (no effect, one on the other side, or "
    "another level). The ends of a single printed number are 30 % away, those of a share at 1.3 times the odds."
)


#: Said of a question that no run can tell.
NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Question:
    """What a study computes beside a printed figure.

    Parameters
    ----------
    item
        The item of the study whose runs it needs.
    quantity
        What it is about.
    printed
        The figure of the source.
    figure
        From what the study knows of one seed or world to our value; None where that cannot tell.
    workload
        Of which requests, where a study has several.
    rule
        The contender that is to have the gain; empty where the figure is of the baseline alone.
    against
        The baseline.
    repeats
        The item that asks for the same figure of ours, if there is one: the tally counts it there.
    """

    item: str
    quantity: str
    printed: Printed
    figure: Callable[..., float | None]
    workload: str = ""
    rule: str = ""
    against: str = ""
    repeats: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with our values, one a seed that can tell."""

    question: Question
    values: tuple[float, ...]

    @classmethod
    def by(cls, question: Question, values: Iterable[float | None]) -> Judged:
        """Return a question with what is known."""
        return cls(question, tuple(value for value in values if value is not None))

    @property
    def ours(self) -> MeanOverSeeds | None:
        """The mean over seeds with its 95 % interval; None where no seed can tell."""
        return over_seeds(self.values) if self.values else None

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`, or `NO_ANSWER`."""
        single = self.question.printed.single_run
        return verdict(interval_of(self.values, single_run=single), self.question.printed) if self.values else NO_ANSWER


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
