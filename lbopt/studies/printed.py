"""A published figure: what is printed and where, between which ends a figure of ours counts as the same, and why.

A source that prints a range gives both ends. A source that prints one number gives none, although its number is of one
run on another machine with other requests. The ends then come from a `Tolerance`, which depends on the kind of number
only, never on the row:

    level, change, difference   value ± 30 % of its size: `within`
    share of a whole            odds p / (1 - p) divided and multiplied by 1.3: `within_odds`. 30 % of p itself would
                                let every share above 62 % agree with 88.7 %, and would judge the share in use
                                otherwise than the idle share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbopt.statistics import Interval

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A published figure.

    Parameters
    ----------
    source, place
        The paper or shipped table, and the place in it.
    text
        As the source has it, without the unit.
    unit
        Empty for ratios and for numbers without one.
    low, high
        Between which ours counts as the same, both included; infinite where the statement is open.
    tolerance, why
        What the ends add to the print, in words, and why.
    value
        The number, where a single one is printed.
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
    text: str
    unit: str
    low: float
    high: float
    tolerance: str
    why: str
    value: float | None = None
    nothing: float | None = 0.0
    calibrated: bool = False
    single_run: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"printed '{self.text}' has the ends {self.low} and {self.high}; expected low < high")
        if self.value is not None and not self.low <= self.value <= self.high:
            raise ValueError(f"printed '{self.text}': {self.value} is not between its ends {self.low} and {self.high}")


def printed_range(
    low: float, high: float, *, source: str, place: str, text: str, unit: str = "", calibrated: bool = False
) -> Printed:
    """Return a figure of which the source prints the ends; an infinite end is open.

    Parameters
    ----------
    source, place
        The paper, and where the figure is in it.
    calibrated
        Whether our model was fitted to this figure.
    """
    return Printed(
        source=source,
        place=place,
        text=text,
        unit=unit,
        low=low,
        high=high,
        tolerance="as printed",
        why="the source prints a range, or only on which side of it a figure lies",
        calibrated=calibrated,
    )


def printed_number(
    value: float,
    tolerance: Tolerance,
    *,
    source: str,
    place: str,
    text: str = "",
    unit: str = "",
    nothing: float | None = 0.0,
    calibrated: bool = False,
    single_run: bool = False,
) -> Printed:
    """Return a figure of which the source prints one number; `text` is that number where it is left out.

    Parameters
    ----------
    tolerance
        How far ours may be from it.
    source, place
        The paper, and where the figure is in it.
    text
        The words of the source; empty takes the number.
    nothing
        The value that stands for no effect; None where there is none.
    calibrated
        Whether our model was fitted to this figure.
    single_run
        Whether the source ran it once.
    """
    low, high = tolerance.ends(value)
    return Printed(
        source=source,
        place=place,
        text=text or f"{value:g}".replace("-", "−"),
        unit=unit,
        low=low,
        high=high,
        tolerance=tolerance.text,
        why=tolerance.why,
        value=value,
        nothing=nothing,
        calibrated=calibrated,
        single_run=single_run,
    )


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
