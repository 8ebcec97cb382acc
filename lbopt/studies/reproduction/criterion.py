"""When a published value and ours agree: by a rule that is chosen for the kind of number, never for a row.

A rule sees the published value and ours, one per seed. Where the sources print a single run without repeats, ours are
asked whether one run of theirs could have been one of ours: the 95 % prediction interval, mean ± t s sqrt(1 + 1/n).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.statistics import CONFIDENCE, over_seeds

#: How far apart "alike" numbers of two different machines or traces may be. One replay a cell without error bars, of
#: requests that nobody else has, supports no more.
ALIKE = 0.3

Rule = Callable[[float, Sequence[float]], bool | None]


@dataclass(frozen=True, slots=True)
class Criterion:
    """A rule in words, and as a function of the published value and ours; None = these numbers cannot tell."""

    text: str
    agrees: Rule


def same_digits(decimals: int) -> Criterion:
    """Agree where our value, rounded like the printed one, is the printed one."""
    return Criterion(
        "same printed digits", lambda published, ours: round(float(np.mean(ours)), decimals) == round(published, 9)
    )


def every_digit() -> Criterion:
    """Agree to twelve digits: sums of floats in another order may differ in the last ones."""
    return Criterion(
        "to every digit", lambda published, ours: math.isclose(float(np.mean(ours)), published, rel_tol=1e-12)
    )


def within(share: float) -> Criterion:
    """Agree where our mean is within a share of the published value."""

    def agrees(published: float, ours: Sequence[float]) -> bool:
        return bool(abs(float(np.mean(ours)) - published) <= share * abs(published))

    return Criterion(f"within {100 * share:g} %", agrees)


def within_points(points: float) -> Criterion:
    """Agree where our mean is so near, in the unit of the value."""

    def agrees(published: float, ours: Sequence[float]) -> bool:
        return bool(abs(float(np.mean(ours)) - published) <= points + 1e-12)

    return Criterion(f"within {points:g}", agrees)


def same_side(of: float, text: str) -> Criterion:
    """Agree where both lie on one side of `of`, ours with its whole interval where there is one."""

    def agrees(published: float, ours: Sequence[float]) -> bool:
        found = over_seeds(ours)
        ends = [end for end in (found.mean, found.low, found.high) if end is not None]
        return all((end - of) * (published - of) > 0 for end in ends)

    return Criterion(text, agrees)


def same_sign() -> Criterion:
    """Agree where both are gains, or both losses."""
    return same_side(0.0, "same sign")


def same_order() -> Criterion:
    """Agree where two ratios say the same of who is ahead."""
    return same_side(1.0, "same order")


def one_run(ours: Sequence[float]) -> tuple[float, float] | None:
    """Return where 95 % of single runs lie, from runs of some seeds; None for one seed."""
    found = over_seeds(ours)
    if found.low is None or found.high is None:
        return None
    half = (found.high - found.low) / 2 * math.sqrt(len(ours) + 1)
    return found.mean - half, found.mean + half


def inside_one_run() -> Criterion:
    """Agree where the published run could be one of ours."""

    def agrees(published: float, ours: Sequence[float]) -> bool | None:
        ends = one_run(ours)
        return None if ends is None else ends[0] <= published <= ends[1]

    return Criterion(f"inside {100 * CONFIDENCE:g} % of single runs", agrees)
