"""e_G and E[Z^2]: the published table, closed forms, and integrals of the density by another quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special

from lbopt.exceptions import InputError
from lbopt.theory.laws.load_law import improvement_floor, leading_imbalance, sharp_imbalance, skewness_term
from lbopt.theory.laws.normal_maximum import expected_maximum, expected_squared_maximum

#: G, e_G and E[Z^2] - 1 as tabled with the sharp form.
TABLE = [
    (2, 0.56419, 0.0),
    (4, 1.02938, 0.5513),
    (8, 1.42360, 1.3995),
    (16, 1.76599, 2.4137),
    (32, 2.06967, 3.5251),
    (64, 2.34373, 4.6966),
    (128, 2.59460, 5.9072),
    (256, 2.82686, 7.1448),
]


@pytest.mark.parametrize(("G", "mean", "square_less_one"), TABLE)
def test_table(G: int, mean: float, square_less_one: float) -> None:
    assert expected_maximum(G) == pytest.approx(mean, abs=5.1e-6)
    assert expected_squared_maximum(G) - 1 == pytest.approx(square_less_one, abs=5.1e-5)


def test_closed_forms() -> None:
    assert expected_maximum(1) == pytest.approx(0, abs=1e-13)
    assert expected_squared_maximum(1) == pytest.approx(1, rel=1e-12)
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-12)
    assert expected_squared_maximum(2) == pytest.approx(1, rel=1e-12)
    assert expected_maximum(3) == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-12)
    assert expected_squared_maximum(3) == pytest.approx(1 + math.sqrt(3) / (2 * math.pi), rel=1e-12)
    exact = 6 / math.pi**1.5 * math.atan(math.sqrt(2))
    assert expected_maximum(4) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("G", [2, 7, 100, 4096, 10**6, 10**12])
def test_against_the_density(G: int) -> None:
    """E[Z^k] = int x^k G phi Phi^(G-1) dx by Gauss and Legendre on 54 panels: another integrand, another rule."""
    node, weight = special.roots_legendre(40)
    edges = np.linspace(-12, 15, 55)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    x = (edges[1:] + edges[:-1])[:, None] / 2 + half * node
    density = G * np.exp(-(x**2) / 2 + (G - 1) * special.log_ndtr(x)) / math.sqrt(2 * math.pi)
    assert np.sum(half * weight * density) == pytest.approx(1, rel=1e-12)
    assert expected_maximum(G) == pytest.approx(np.sum(half * weight * density * x), rel=1e-11)
    assert expected_squared_maximum(G) == pytest.approx(np.sum(half * weight * density * x**2), rel=1e-11)


def test_they_grow_towards_their_limit() -> None:
    values = [expected_maximum(2**i) for i in range(1, 60)]
    assert all(a < b for a, b in itertools.pairwise(values))
    ratios = [value / math.sqrt(2 * math.log(2**i)) for i, value in enumerate(values, 1)]
    assert all(0.4 < ratio < 1 for ratio in ratios)
    assert ratios[7] == pytest.approx(0.85, abs=0.005)  # G = 256, as the docstring says


def test_nobody_has_no_maximum() -> None:
    for function in (expected_maximum, expected_squared_maximum):
        with pytest.raises(InputError, match="maximum of 0 normals"):
            function(0)


def test_sharp_form_by_hand() -> None:
    """Numbers of the note beside the table: G = 16, B = 72, p = 0.02, prompts to 100: 13738, and 14214 with skew."""
    p, s_max = 0.02, 100
    variance = (s_max**2 - 1) / 12 + (1 - p) / p**2
    skewness = (2 - p) * (1 - p) / p**3 / variance**1.5
    sigma = math.sqrt(variance)
    assert leading_imbalance(16, 72, sigma) == pytest.approx(13738, abs=0.5)
    assert sharp_imbalance(16, 72, sigma, skewness) == pytest.approx(14214, abs=0.5)
    assert skewness_term(2, sigma, skewness) == pytest.approx(0, abs=1e-9)
    floor = improvement_floor(16, 72, sigma, s_max)
    assert floor == pytest.approx(16 / 15 * sigma / s_max * 1.76599 * math.sqrt(72), rel=1e-5)
