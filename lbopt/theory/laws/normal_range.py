r"""The range W of G independent standard normals, largest less smallest: its mean and its standard deviation.

E[W] = 2 e_G by symmetry. With x < y,

    P(smallest <= x, largest > y) = 1 - Phi(y)^G - (1 - Phi(x))^G + (Phi(y) - Phi(x))^G,

and E[W^2] is twice the integral of that over x < y (Tippett 1925). The integrand is smooth and falls like a normal
tail; on a square grid, in which the diagonal counts half, the error is of second order in the step: below 10^-5.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import special

from lbopt.theory.laws.normal_maximum import expected_maximum

_REACH, _POINTS = 9.0, 2001


@cache
def range_deviation(G: int) -> float:
    """Return the standard deviation d_3(G) of the range of `G` >= 1 independent standard normals; 0 for G = 1."""
    x = np.linspace(-_REACH, _REACH, _POINTS)
    step = float(x[1] - x[0])
    below = special.ndtr(x)
    low, high = below[:, None], below[None, :]
    both = 1 - high**G - (1 - low) ** G + np.clip(high - low, 0, 1) ** G
    weight = np.triu(np.ones_like(both)) - 0.5 * np.eye(_POINTS)
    square = 2 * float((both * weight).sum()) * step**2
    return math.sqrt(max(0.0, square - (2 * expected_maximum(G)) ** 2))
