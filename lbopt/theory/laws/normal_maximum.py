"""The largest of G independent standard normals, the range, and a floor for loads that are nearly normal.

The largest of G independent standard normals, and the range from the smallest to it.

The largest of G independent standard normals: its mean e_G and its second moment.

With Z the maximum and Phi the normal distribution function, P(Z <= x) = Phi(x)^G, so integrating the tails by parts,

    E[Z]   = int_0^oo (1 - Phi(x)^G) - Phi(-x)^G dx,
    E[Z^2] = int_0^oo 2 x ((1 - Phi(x)^G) + Phi(-x)^G) dx.

Both integrands are smooth and fall like exp(-x^2 / 2), so adaptive quadrature gives them to some 12 digits. 1 - Phi^G
is taken as -expm1(G log Phi), which keeps its digits where Phi is near 1. e_G / sqrt(2 log G) tends to 1, slowly: it
is 0.85 at G = 256. These are the constants in front of sqrt(B) that BF-IO's theorems leave unspecified (section 4).

The range W of G independent standard normals, largest less smallest: its mean and its standard deviation.

E[W] = 2 e_G by symmetry. With x < y,

    P(smallest <= x, largest > y) = 1 - Phi(y)^G - (1 - Phi(x))^G + (Phi(y) - Phi(x))^G,

and E[W^2] is twice the integral of that over x < y (Tippett 1925). The integrand is smooth and falls like a normal
tail; on a square grid, in which the diagonal counts half, the error is of second order in the step: below 10^-5.

A floor of the mean of the largest of G loads, for every B: the constant of FCFS's lower bound (lbopt).

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

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import integrate, special

from lbopt.exceptions import InputError

#: Beyond this, 1 - Phi(x)^G is below 1e-300 for every G that an int64 holds.
_END = 40.0


@cache
def expected_maximum(G: int) -> float:
    """Return e_G, the expected maximum of `G` >= 1 independent standard normals."""
    _check(G)
    return _integral(lambda x: _above(G, x) - _below(G, x))


@cache
def expected_squared_maximum(G: int) -> float:
    """Return E[Z^2] of the maximum Z of `G` >= 1 independent standard normals; 1 for G = 1 and G = 2."""
    _check(G)
    return _integral(lambda x: 2 * x * (_above(G, x) + _below(G, x)))


@cache
def expected_cubed_maximum(G: int) -> float:
    """Return E[Z^3] of the maximum Z of `G` >= 1 independent standard normals."""
    _check(G)
    return _integral(lambda x: 3 * x**2 * (_above(G, x) - _below(G, x)))


def lone_maximum(G: int) -> float:
    """Return phi(z), P(Z > z) = 1/G: the largest of `G` >= 2 loads over their mean, where one alone is random.

    Its deviation is 1, and its mean is chosen for the least value. `laws.stale` has what it is the least of.
    """
    _check(G)
    z = float(special.ndtri(1 / G))
    return math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def _above(G: int, x: float) -> float:
    return float(-np.expm1(G * special.log_ndtr(x)))


def _below(G: int, x: float) -> float:
    return float(np.exp(G * special.log_ndtr(-x)))


def _integral(function: Callable[[float], float]) -> float:
    value, _ = integrate.quad(function, 0.0, _END, epsabs=1e-13, epsrel=1e-13, limit=400, points=(1.0, 3.0, 6.0, 10.0))
    return float(value)


def _check(G: int) -> None:
    if G < 1:
        raise InputError(f"the maximum of {G} normals was asked for; expected G of at least 1")


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


#: Step and end of the sums: they err on the side of the bound.
_STEP, _LAST = 1e-4, 9.0


def maximum_floor(G: int, distance: float) -> float:
    """Return a number that E max Z is not below, for G workers and a distance of 0 or more from the normal law."""
    from scipy.special import ndtr

    if G < 2 or not distance >= 0:
        raise InputError(
            f"G is {G} and the distance {distance}; expected 2 workers or more and a distance of at least 0"
        )
    at = np.arange(0, _LAST, _STEP)
    above, below = np.minimum(1, ndtr(at) + distance), np.minimum(1, ndtr(-at) + distance)
    # Both integrands fall: the sum over right ends is too small, the one over left ends too large.
    positive = np.concatenate(([0.0], np.cumsum((1 - above**G)[1:]) * _STEP))
    negative = np.concatenate(([0.0], np.cumsum(below[:-1] ** G) * _STEP))
    beyond = (np.sqrt(1 + at**2) - at) / 2 * below ** (G - 1)
    return float(positive.max() - (negative + beyond).min())
