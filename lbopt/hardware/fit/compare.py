"""Can the data tell two laws apart? Paired differences of their squared leave-one-out errors over the rows.

The rule, stated with every answer: law A is distinguished from law B where flipping the signs of d_i = e²_B,i − e²_A,i
in all ways makes a mean as far from zero as theirs in at most 5 % of the ways. The test needs no normal errors -
squares have heavy tails, and Student's interval, shown beside it, hardly ever excludes zero on them - but at least six
rows: with five, no data can reach 5 %. It takes rows as independent, which errors that share their other rows are not
quite, and the law that leads was picked by looking. On rows drawn at the loads and the scatter of the published groups
it spoke in 6 to 12 % of the draws where the truth lay halfway between line and logarithm; where one of them was true it
named that one in 8 to 80 %, and the wrong one in at most 2 %. So a yes is a little weaker than 5 % sounds, and a no
says mostly that the rows are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.fit.law_fit import LawFit
from lbopt.statistics import CONFIDENCE, half_width

#: With fewer rows the sign-flip test cannot reach 5 %: 2 / 2^5 is above it, 2 / 2^6 below.
FEWEST_ROWS = 6

#: Up to 13 rows all flips are tried, beyond that so many drawn ones.
_RESAMPLES = 9_999

#: Errors below so much of the fitted values are rounding.
_ROUNDING = 1e-9

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
        Whether that is at most 5 %.
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
    from scipy.stats import ttest_1samp

    differences = worse.left_out**2 - better.left_out**2
    rows = differences.size
    names = (better.law.name, worse.law.name)
    if not np.isfinite(differences).all():  # a row that one law cannot be judged on
        return Comparison(*names, float("nan"), float("-inf"), float("inf"), 1.0, False)
    mean = float(differences.mean())
    scale = float(np.abs(better.law.back(better.numbers.fitted)).max())
    if float(np.abs(differences).max()) <= (_ROUNDING * scale) ** 2:  # both are exact
        return Comparison(*names, mean, mean, mean, 1.0, False)
    half = half_width(differences)
    p_value = float(ttest_1samp(differences, 0.0).pvalue)
    if rows <= _MOST_FLIPPED:
        p_value = _sign_flips(differences)
    apart = p_value <= 1 - CONFIDENCE + 1e-12
    return Comparison(*names, mean, mean - half, mean + half, p_value, apart)


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
