"""A published figure: what is printed and where, between which ends a figure of ours counts as the same, and why.

A source that prints a range gives both ends. A source that prints one number gives none, although its number is of one
run on another machine with other requests. The ends then come from a `Tolerance`, which depends on the kind of number
only, never on the row:

    level, change, difference   value ± 30 % of its size: `within`
    share of a whole            odds p / (1 - p) divided and multiplied by 1.3: `within_odds`. 30 % of p itself would
                                let every share above 62 % agree with 88.7 %, and would judge the share in use
                                otherwise than the idle share.

One verdict on a printed figure, from its ends and the 95 % interval of ours; both sides are treated alike.

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
from typing import Any

from lbopt.statistics import Interval, MeanOverSeeds, over_seeds

#: How far "alike" numbers of two machines or traces may be apart. One replay without error bars, of requests that are
#: not published, supports no narrower tolerance.
ALIKE = 0.3

ONE_RUN = "one run on another machine with other requests, printed without error bars"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from a printed number ours may lie.

    Parameters
    ----------
    text
        In words, as the tables show it.
    why
        Why this tolerance and no other.
    ends
        From the printed number to the lowest and the highest number that count as the same.
    """

    text: str
    why: str
    ends: Callable[[float], Interval]


AS_PRINTED = Tolerance(
    "as printed", "the source prints a range, or only on which side of it a figure lies", lambda value: (value, value)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A published figure.

    Parameters
    ----------
    source
        The paper or shipped table.
    place
        The place in it.
    said
        The number, or the ends of a range; an infinite end is open.
    text
        As the source has it, without the unit; empty takes the number.
    unit
        Empty for ratios and for numbers without one.
    near
        Between which ends ours counts as the same, both included, where a single number is printed.
    nothing
        The value that means no effect: 0 of a change, 1 of a ratio; None of a level, which is no effect.
    calibrated
        Whether our setting was made to meet the figure, so that agreement says nothing.
    single_run
        Whether the figure is of one simulated run whose noise is that of our runs: ours is then the interval of single
        runs, not that of their mean.
    """

    source: str
    place: str
    said: float | Interval
    text: str = ""
    unit: str = ""
    near: Tolerance = AS_PRINTED
    nothing: float | None = 0.0
    calibrated: bool = False
    single_run: bool = False

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", f"{self.said:g}".replace("-", "−"))
        if not self.low < self.high:
            raise ValueError(f"printed '{self.text}' has the ends {self.low} and {self.high}; expected low < high")
        if self.value is not None and not self.low <= self.value <= self.high:
            raise ValueError(f"printed '{self.text}': {self.value} is not between its ends {self.low} and {self.high}")

    @property
    def value(self) -> float | None:
        """The number, where a single one is printed."""
        return None if isinstance(self.said, tuple) else self.said

    @property
    def low(self) -> float:
        """The lower end."""
        return self.said[0] if isinstance(self.said, tuple) else self.near.ends(self.said)[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self.said[1] if isinstance(self.said, tuple) else self.near.ends(self.said)[1]

    @property
    def tolerance(self) -> str:
        """What the ends add to the print, in words."""
        return self.near.text

    @property
    def why(self) -> str:
        """Why they do."""
        return self.near.why


def printed_range(low: float, high: float, **about: Any) -> Printed:
    """Return a figure of which the source prints the ends."""
    return Printed(said=(low, high), **about)


def printed_number(value: float, tolerance: Tolerance, **about: Any) -> Printed:
    """Return a figure of which the source prints one number."""
    return Printed(said=value, near=tolerance, **about)


def within(share: float = ALIKE, why: str = ONE_RUN) -> Tolerance:
    """Return the tolerance of levels, changes and differences: a share of the printed size, both ways."""
    return Tolerance(
        f"within {100 * share:g} %", why, lambda value: (value - share * abs(value), value + share * abs(value))
    )


def within_odds(factor: float = 1 + ALIKE, why: str = ONE_RUN) -> Tolerance:
    """Return the tolerance of shares in %: odds divided and multiplied by a factor. It never holds 0 or 100 %."""

    def ends(value: float) -> Interval:
        odds = value / (100 - value)
        low, high = (100 * one / (1 + one) for one in (odds / factor, odds * factor))
        return low, high

    return Tolerance(f"odds within a factor of {factor:g}", why, ends)


def within_points(points: float, why: str) -> Tolerance:
    """Return the tolerance of a number of units, both ways."""
    margin = points + 1e-12  # a difference of two printed numbers is that of their floats
    return Tolerance(f"within {points:g}", why, lambda value: (value - margin, value + margin))


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
