r"""What FCFS costs: the expected imbalance with its constants, and the floor that follows for every comparison.

By the expansion of Cornish and Fisher a sum of B independent slots of variance sigma^2 and skewness gamma_1 has, at the
normal quantile z, the quantile B mu + sigma sqrt(B) (z + gamma_1 (z^2 - 1) / (6 sqrt(B)) + O(1/B)). The maximum over G
workers takes z at the maximum Z of G normals, and so, on average,

    E[Imb] = G sigma sqrt(B) [e_G + gamma_1 (E[Z^2] - 1) / (6 sqrt(B)) + O(1/B)]          (sharp form)

with sigma = sigma_s in Theorem 1 and sigma_snap in Theorem 2. At G = 2 the second term vanishes. It grows with log G:
for few slots and many workers it is no correction, and there the exact law (`load_law`) is the one to use.

The O(1/B) is known as well. Cornish and Fisher's third term, and the second of Euler and Maclaurin's sum over the
load's lattice of span 1/u tokens, give it as c e_G / B with

    c = kappa (E[Z^3] - 3 e_G) / (24 e_G) - gamma_1^2 (2 E[Z^3] - 5 e_G) / (36 e_G) - 1 / (24 u^2 sigma^2),

kappa the excess kurtosis of a slot. It changes its sign between G = 16 and G = 21 for the laws of the ledger.
"""

from __future__ import annotations

import math

from lbopt.theory.laws.normal_maximum import expected_cubed_maximum, expected_maximum, expected_squared_maximum
from lbopt.theory.laws.slot_law import SlotLaw


def leading_imbalance(G: int, B: int, sigma: float) -> float:
    """Return G sigma sqrt(B) e_G, in tokens, for slots of standard deviation `sigma`."""
    return G * sigma * math.sqrt(B) * expected_maximum(G)


def skewness_term(G: int, sigma: float, skewness: float) -> float:
    """Return the second term of the sharp form in tokens; it does not depend on B."""
    return G * sigma * skewness * (expected_squared_maximum(G) - 1) / 6


def sharp_imbalance(G: int, B: int, sigma: float, skewness: float) -> float:
    """Return the sharp form, in tokens.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    sigma
        Standard deviation of a slot, tokens.
    skewness
        Skewness of a slot.
    """
    return leading_imbalance(G, B, sigma) + skewness_term(G, sigma, skewness)


def third_term(G: int, slot: SlotLaw) -> tuple[float, float]:
    """Return c, and the sum of the magnitudes of its three parts, which is what it is exact to a few per cent of."""
    e, cubed = expected_maximum(G), expected_cubed_maximum(G)
    parts = (
        slot.excess_kurtosis * (cubed - 3 * e) / (24 * e),
        -(slot.skewness**2) * (2 * cubed - 5 * e) / (36 * e),
        -1 / (24 * slot.unit**2 * slot.variance),
    )
    return sum(parts), sum(map(abs, parts))


def improvement_floor(G: int, B: int, sigma: float, gap: float) -> float:
    r"""Return the least ratio of imbalances, FCFS over BF-IO, where BF-IO's mean imbalance is at most (G - 1) `gap`.

    It is G/(G-1) (sigma/gap) e_G sqrt(B) (1 - o(1)). The mean imbalance is at most G - 1 times the mean gap, so by the
    corrected Lemma 4 `gap` may be s_max - 2; with two sizes in plenty, and in rounds of random prompts, it may be half
    of s_max - 1. The printed Theorem 2 has s_max / p, and an unspecified constant in place of e_G / sqrt(log G).

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    sigma
        Standard deviation of a slot, tokens.
    gap
        Tokens, above 0.
    """
    return leading_imbalance(G, B, sigma) / ((G - 1) * gap)


def halved(s_max: int) -> float:
    """Return (s_max - 1) / 2, the `gap` of the improvement where residues alone are left."""
    return (s_max - 1) / 2
