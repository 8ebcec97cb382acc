"""Means with Student intervals: over seeds, over batches of a run, and for estimates with a known standard error.

Every interval of lbopt that is not a bootstrap, a binomial or a rank interval is computed here:

    mean ± t(n - 1) s / sqrt(n),        s² = sum (x - mean)² / (n - 1),

with t(d) the two-sided quantile of Student's law with d degrees of freedom. For n values of one run that follow closely
on each other the formula is wrong, because they are dependent. They are cut into batches first, whose means nearly are
independent (batch means: Law and Carson, *A sequential procedure for determining the length of a steady-state
simulation*, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Coverage of every interval, unless a caller asks for another one.
CONFIDENCE = 0.95

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeanOverSeeds:
    """A mean and the ends of its 95 % Student interval; None where there is one seed."""

    mean: float
    low: float | None
    high: float | None


def student_quantile(degrees: float | None, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile: the multiple of a standard error that is half of an interval.

    Parameters
    ----------
    degrees
        Degrees of freedom of the standard error; None where it is known, which is the normal law.
    confidence
        Coverage of the interval, between 0 and 1.
    """
    from scipy.special import ndtri, stdtrit

    level = 0.5 + confidence / 2
    return float(ndtri(level) if degrees is None else stdtrit(degrees, level))


def standard_error(values: NDArray[Any]) -> float:
    """Return the standard error of the mean of independent values, at least two of them."""
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def half_width(values: NDArray[Any], confidence: float = CONFIDENCE) -> float:
    """Return half of the Student interval around the mean of independent values, at least two of them."""
    return student_quantile(values.size - 1, confidence) * float(values.std(ddof=1)) / math.sqrt(values.size)


def over_seeds(values: Sequence[float]) -> MeanOverSeeds:
    """Return the mean of one value per seed with its 95 % interval."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if array.size < 2:
        return MeanOverSeeds(mean, None, None)
    half = half_width(array)
    return MeanOverSeeds(mean, mean - half, mean + half)


def batch_ratios(numerator: NDArray[Any], denominator: NDArray[Any], batches: int) -> NDArray[np.float64] | None:
    """Return sum(numerator) / sum(denominator) of equal batches; None where a batch would have fewer than two entries.

    Parameters
    ----------
    numerator, denominator
        (n,) numbers in the order in which they were observed. What does not fill a batch is dropped from the start.

    Returns
    -------
    float64 (batches,), in the unit of the numerator over that of the denominator.
    """
    length = numerator.size // batches
    if length < 2:
        return None
    used = length * batches
    tops, bottoms = (values[-used:].reshape(batches, length).sum(axis=1) for values in (numerator, denominator))
    ratios: NDArray[np.float64] = tops / bottoms
    return ratios


def interval_around(centre: float, values: NDArray[Any], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval around `centre` that is as wide as that of the mean of independent values.

    The ratio of two sums is not the mean of the batches' ratios, but it has their error.
    """
    half = half_width(values, confidence)
    return centre - half, centre + half
