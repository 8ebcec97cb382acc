r"""The range W of G independent standard normals, largest less smallest: its mean and its standard deviation.

E[W] = 2 e_G by symmetry. With x < y, P(smallest <= x, largest > y) = 1 - Phi(y)^G - (1 - Phi(x))^G + (Phi(y) - Phi(x))^G,
and integrating tails twice E[W^2] = 2 int int_{x < y} of that probability (Tippett 1925). The integrand is smooth and
falls like a normal tail, so the trapezoidal rule on a fine grid converges faster than any power of its step.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import special

from lbopt.theory.normal_maximum import expected_maximum

_REACH, _POINTS = 9.0, 2001


@cache
def range_deviation(G: int) -> float:
    """Return the standard deviation of the range of `G` >= 1 independent standard normals; 0 for G = 1.

    W is 0 with x = y excluded, so the triangle's edge counts half: the integrand there is the continuous limit.
    """
    x = np.linspace(-_REACH, _REACH, _POINTS)
    step = float(x[1] - x[0])
    below = special.ndtr(x)
    low, high = below[:, None], below[None, :]
    both = 1 - high**G - (1 - low) ** G + np.clip(high - low, 0, 1) ** G
    weight = np.triu(np.ones_like(both)) - 0.5 * np.eye(_POINTS)
    square = 2 * float((both * weight).sum()) * step**2
    return math.sqrt(max(0.0, square - (2 * expected_maximum(G)) ** 2))
