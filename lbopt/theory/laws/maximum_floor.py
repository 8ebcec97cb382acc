r"""A floor of the mean of the largest of G loads, for every B: the constant of FCFS's lower bound (lbopt).

Z_1, ..., Z_G are independent with one law, of mean 0 and variance 1, and their distribution function is within
`distance` of the normal one, Phi. For every x >= 0 and y >= 0

    E max Z  >=  int_0^x (1 - (Phi(t) + distance)^G) dt - int_0^y (Phi(-t) + distance)^G dt
                 - (sqrt(1 + y^2) - y) / 2 * (Phi(-y) + distance)^(G - 1).

The first term is a part of the positive part's mean, the other two bound the negative part's: beyond y all others have
to be below -y, and E (Z + y)^- = (E|Z + y| - y) / 2 is at most (sqrt(1 + y^2) - y) / 2. The largest value over x and y
tends to e_G as the distance tends to 0. With Berry and Esseen's bound for the distance it is a floor of FCFS's mean
imbalance over G sigma sqrt(B). The proof is in the manual (Proofs, first-come placement). BF-IO, equations (13) to
(16), has its order.
"""

from __future__ import annotations

import numpy as np

from lbopt.exceptions import InputError

#: Step and end of the sums: they err on the side of the bound.
_STEP, _END = 1e-4, 9.0


def maximum_floor(G: int, distance: float) -> float:
    """Return a number that E max Z is not below, for G workers and a distance of 0 or more from the normal law."""
    from scipy.special import ndtr

    if G < 2 or not distance >= 0:
        raise InputError(
            f"G is {G} and the distance {distance}; expected 2 workers or more and a distance of at least 0"
        )
    at = np.arange(0, _END, _STEP)
    above, below = np.minimum(1, ndtr(at) + distance), np.minimum(1, ndtr(-at) + distance)
    # Both integrands fall: the sum over right ends is too small, the one over left ends too large.
    positive = np.concatenate(([0.0], np.cumsum((1 - above**G)[1:]) * _STEP))
    negative = np.concatenate(([0.0], np.cumsum(below[:-1] ** G) * _STEP))
    beyond = (np.sqrt(1 + at**2) - at) / 2 * below ** (G - 1)
    return float(positive.max() - (negative + beyond).min())
