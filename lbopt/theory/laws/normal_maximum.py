r"""The largest of G independent standard normals: its mean e_G and its second moment.

With Z the maximum and Phi the normal distribution function, P(Z <= x) = Phi(x)^G, so integrating the tails by parts,

    E[Z]   = int_0^oo (1 - Phi(x)^G) - Phi(-x)^G dx,
    E[Z^2] = int_0^oo 2 x ((1 - Phi(x)^G) + Phi(-x)^G) dx.

Both integrands are smooth and fall like exp(-x^2 / 2), so adaptive quadrature gives them to some 12 digits. 1 - Phi^G
is taken as -expm1(G log Phi), which keeps its digits where Phi is near 1. e_G / sqrt(2 log G) tends to 1, slowly: it
is 0.85 at G = 256. These are the constants in front of sqrt(B) that BF-IO's theorems leave unspecified (section 4).
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
