"""The numbers of a race: shares, quantiles and ratios of times, of which some are only known to exceed the limit.

A run that was not closed has a time of infinity, and a quantile that falls on one says "at least the limit" instead of
a number. Quantiles are members of the sample (the inverse of its distribution function), never in between: nothing is
interpolated towards infinity.

The ratio of two times is known exactly where both runs were closed; where one was not it is known to lie above or
below limit / time, and where neither was nothing is known and the pair is left out. The median of such ratios is
bracketed by the medians of their lower and of their upper ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.race.record import RaceRecord

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bracket:
    """A number known to lie between `low` and `high`; equal where it is known, `high` infinite where it is not."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


def times_of(records: Sequence[RaceRecord], *, claims: bool = True) -> Times:
    """Return the seconds of each run, infinite where it was not closed, or only by a claim and those do not count."""
    return np.array(
        [
            record.seconds
            if record.closed and record.seconds is not None and (claims or record.status == "proved")
            else np.inf
            for record in records
        ],
        dtype=np.float64,
    )


def share_within(times: Times, seconds: float) -> float:
    """Return the share of runs closed within so many seconds; NaN of none."""
    return float(np.mean(np.isfinite(times) & (times <= seconds))) if times.size else float("nan")


def quantile(times: Times, q: float, limit: float) -> Bracket | None:
    """Return the q-quantile of times, at least the limit where it falls on a run that was not closed; None of none."""
    if times.size == 0:
        return None
    value = float(np.quantile(times, q, method="inverted_cdf"))
    return Bracket(value, value) if np.isfinite(value) else Bracket(limit, np.inf)


def ratios(times: Times, reference: Times, limit: float) -> list[Bracket]:
    """Return time / reference for each pair of which at least one was closed."""
    found = []
    for one, other in zip(times.tolist(), reference.tolist(), strict=True):
        if np.isfinite(one) and np.isfinite(other):
            found.append(Bracket(one / other, one / other))
        elif np.isfinite(other):
            found.append(Bracket(limit / other, np.inf))
        elif np.isfinite(one):
            found.append(Bracket(0.0, one / limit))
    return found


def median_ratio(found: Sequence[Bracket]) -> Bracket | None:
    """Return what is known of the median; None of none."""
    if not found:
        return None
    low = np.quantile([one.low for one in found], 0.5, method="inverted_cdf")
    high = np.quantile([one.high for one in found], 0.5, method="inverted_cdf")
    return Bracket(float(low), float(high))


def quickest(fields: Sequence[Times]) -> Times:
    """Return, run by run, the time of whoever was first: the best solver chosen with hindsight."""
    first: Times = np.min(np.stack(list(fields)), axis=0)
    return first
