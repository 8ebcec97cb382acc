"""Can the data tell two laws apart? Paired differences of their squared leave-one-out errors over the rows.

The rule, stated with every answer: law A is told from law B where the mean of d_i = e²_B,i − e²_A,i differs from zero
both by its 95 % Student interval and by the exact test that flips the signs of the d_i in all ways (two-sided 5 %).
The second needs no normal errors, and at least six rows: with five, no data can reach 5 %. Both take rows as
independent, which errors that share their other rows are not quite; and the law that leads was picked by looking.
So "told apart" is weaker than 5 % sounds, and "not told apart" says nothing of which law is true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.fit.law_fit import LawFit
from lbopt.hardware.fit.least_squares import CONFIDENCE

#: With fewer rows the sign-flip test cannot reach 5 %: 2 / 2^5 is above it, 2 / 2^6 below.
FEWEST_ROWS = 6

#: Up to 13 rows all flips are tried, beyond that so many drawn ones.
_RESAMPLES = 9_999

#: With more rows the mean is normal enough for Student's test, and flips would take long.
_MOST_FLIPPED = 2_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The law of the least leave-one-out error against another.

    Parameters
    ----------
    better, worse
        Names of the laws.
    difference, low, high
        Mean of the paired differences of squared errors and its 95 % Student interval, unit of the response squared.
    p_value
        Of the sign-flip test; 1 where there is nothing to test.
    told_apart
        By both.
    """

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p_value: float
    told_apart: bool


def compare(fits: list[LawFit]) -> tuple[Comparison, ...]:
    """Compare the fit of the least leave-one-out error with each of the others, in the order of their errors."""
    ordered = sorted(fits, key=lambda fit: fit.left_out_error)
    return tuple(compare_two(ordered[0], other) for other in ordered[1:])


def compare_two(better: LawFit, worse: LawFit) -> Comparison:
    """Compare two fits of the same rows."""
    from scipy.stats import t, ttest_1samp

    differences = worse.left_out**2 - better.left_out**2
    rows = differences.size
    names = (better.law.name, worse.law.name)
    if not np.isfinite(differences).all():  # a row that one law cannot be judged on
        return Comparison(*names, float("nan"), float("-inf"), float("inf"), 1.0, False)
    mean = float(differences.mean())
    spread = float(differences.std(ddof=1))
    if spread <= 1e-12 * float(np.abs(better.left_out**2).max(initial=0.0)) and abs(mean) <= 1e-12:
        return Comparison(*names, mean, mean, mean, 1.0, False)
    half = float(t.ppf((1 + CONFIDENCE) / 2, rows - 1)) * spread / np.sqrt(rows)
    p_value = float(ttest_1samp(differences, 0.0).pvalue)
    if rows <= _MOST_FLIPPED:
        p_value = _sign_flips(differences)
    apart = (mean - half > 0 or mean + half < 0) and p_value <= 1 - CONFIDENCE + 1e-12
    return Comparison(*names, mean, mean - float(half), mean + float(half), p_value, bool(apart))


def _sign_flips(differences: NDArray[np.float64]) -> float:
    from scipy.stats import permutation_test

    test = permutation_test(
        (differences,),
        lambda d, axis: np.mean(d, axis=axis),
        permutation_type="samples",
        n_resamples=_RESAMPLES,
        batch=512,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)
