"""Tolerances of the reproductions, beside those of `lbopt.studies.printed`.

ratio of two runs           a factor of 1.3 both ways, but no more than r^0.7 to r^1.3, which is 30 % of log r:
                            `within_effect`. 30 % of r itself would hold the ratio 1, no effect, for every r from
                            0.77 to 1.43, and would judge A over B otherwise than B over A.
exact result                half a unit of the last printed digit: `same_digits`; or all digits: `every_digit`
sign, order                 everything on the printed side of no effect: `same_side`
"""

from __future__ import annotations

import math

from lbopt.statistics import Interval
from lbopt.studies.printed import ALIKE, ONE_RUN, Tolerance


def within_effect(share: float = ALIKE, why: str = ONE_RUN) -> Tolerance:
    """Return the tolerance of ratios: a factor of 1 + share, but no more than that share of the logarithm.

    It never holds the ratio 1, and it is the same for a ratio and its inverse.
    """

    def ends(value: float) -> Interval:
        factor = math.exp(min(math.log1p(share), share * abs(math.log(value))))
        return value / factor, value * factor

    return Tolerance(f"within {100 * share:g} % as a ratio", why, ends)


def same_digits(decimals: int) -> Tolerance:
    """Return the tolerance of an exact result: what rounds to the printed digits."""
    half = 0.5 * 10.0**-decimals
    why = "the same requests and rules give the same number, up to the rounding of the print"
    return Tolerance("same printed digits", why, lambda value: (value - half, value + half))


def every_digit() -> Tolerance:
    """Return the tolerance of an exact result in full: twelve digits, for sums in another order differ in the last."""
    why = "the same requests and rules give the same number; sums of floats in another order differ in the last digits"
    return Tolerance("to every digit", why, lambda value: (value - 1e-12 * abs(value), value + 1e-12 * abs(value)))


def same_side(of: float, text: str) -> Tolerance:
    """Return the tolerance of a statement of sign or order: all that lies on the printed side of `of`."""
    why = "only the direction is compared: its size depends on what the source leaves open"
    return Tolerance(text, why, lambda value: (of, math.inf) if value > of else (-math.inf, of))
