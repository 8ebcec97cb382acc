"""The law of a worker's load and what FCFS costs, without sampling.

The law of a worker's load and the expected maximum over workers, computed: what FCFS does, without sampling.

Under first come, first served in an overloaded system every slot is refilled at once by a request that was not chosen
for its size. So the slots are independent, a worker's load is the sum of B of them, and the workers are independent:
the law of the load is the B-fold convolution of the slot law, and with its distribution function F

    E[max_g L_g] = v_1 - sum_{v < v_1} F(v)^G,      E[Imb] = G (E[max_g L_g] - B E[Y]),

exact for every B and G (v_1 is the largest load). BF-IO bounds this from below, by Berry and Esseen (steps 2.C, 2.D).

The convolution is taken by the discrete Fourier transform on a window that holds all but 1e-16 of the mass: Chernoff's
bound, P(L >= v) <= exp(B log M(t) - t v) with M the moment generating function of a slot, says how wide it has to be.
What lies outside folds into the window, and the transform errs by some 1e-16 of the mass. Up to G = 4096 the expected
imbalance is right to 1e-9 of itself; beyond, the error grows with G, and is 2e-7 at G = 10^6 (B = 65536).
``tests/theory/test_load_law.py`` holds it against convolution in exact fractions and transforms in longer floats.

What FCFS costs: the expected imbalance with its constants, and the floor that follows for every comparison.

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from lbopt.exceptions import InputError
from lbopt.theory.laws.normal_maximum import expected_cubed_maximum, expected_maximum, expected_squared_maximum
from lbopt.theory.laws.slot_law import SlotLaw

#: Mass that may lie outside the window on either side.
OUTSIDE = 1e-16

#: Longest window, as float64s: 2 GiB with what the transform needs.
LONGEST = 1 << 26


@dataclass(frozen=True, slots=True)
class LoadLaw:
    """The law of one worker's load.

    Parameters
    ----------
    lowest
        Load of the first entry, in whole numbers of 1/unit tokens.
    probabilities
        float64 (n,): of `lowest`, `lowest` + 1, ...
    unit
        As in the slot law.
    mean, deviation
        Of the load, in tokens, from the slot law.
    """

    lowest: int
    probabilities: NDArray[np.float64]
    unit: int
    mean: float
    deviation: float

    @property
    def loads(self) -> NDArray[np.float64]:
        """float64 (n,): the load of each entry less the mean, in tokens."""
        return (self.lowest + np.arange(self.probabilities.size)) / self.unit - self.mean

    def log_distribution(self) -> NDArray[np.float64]:
        """Return float64 (n,): log P(L <= v), which keeps its digits at both ends."""
        above = np.cumsum(self.probabilities[::-1])[::-1]  # P(L >= v)
        above = np.minimum(np.append(above[1:], 0.0), 1.0)  # P(L > v)
        below = np.minimum(np.cumsum(self.probabilities), 1.0)
        with np.errstate(divide="ignore"):
            return np.where(above < 0.5, np.log1p(-above), np.log(below))

    def expected_excess(self, G: int) -> float:
        """Return E[max of `G` such loads] less the mean load, in tokens."""
        reached = np.exp(G * self.log_distribution())
        at_zero = self.mean * self.unit - self.lowest  # in entries, and no whole number
        whole = int(np.floor(at_zero))
        # E[max] - mean = sum over v of P(max > v) above the mean, less P(max <= v) below it, each over one entry
        upper = np.sum(-np.expm1(G * self.log_distribution()[whole:])) - (at_zero - whole) * (1 - reached[whole])
        lower = np.sum(reached[:whole]) + (at_zero - whole) * reached[whole]
        return float((upper - lower) / self.unit)

    def expected_imbalance(self, G: int) -> float:
        """Return E[G max L - sum L] in tokens."""
        if G < 1:
            raise InputError(f"G is {G}; expected at least 1 worker")
        return G * self.expected_excess(G)

    def normal_distance(self) -> float:
        """Return sup_x |P(Z <= x) - Phi(x)| of the standardised load Z: what Berry and Esseen bound."""
        up_to = np.minimum(np.cumsum(self.probabilities), 1.0)
        before = np.concatenate(([0.0], up_to[:-1]))
        normal = special.ndtr(self.loads / self.deviation)
        return float(np.max(np.maximum(np.abs(up_to - normal), np.abs(before - normal))))


def load_law(slot: SlotLaw, B: int) -> LoadLaw:
    """Return the law of the load of a worker with `B` independent slots."""
    if B < 1:
        raise InputError(f"B is {B}; expected at least 1 slot")
    low, high = _window(slot, B)
    length = fft.next_fast_len(high - low + 1, real=True)
    if length > LONGEST:
        raise InputError(
            f"the law of a load with B = {B} slots spreads over {length} values, more than {LONGEST}; "
            "take fewer slots, shorter outputs (a larger p) or a growth with a smaller denominator"
        )
    folded = np.zeros(length)
    np.add.at(folded, np.arange(slot.probabilities.size) % length, slot.probabilities)
    power = fft.irfft(fft.rfft(folded) ** B, length)
    found = np.roll(power, -(low % length))[: high - low + 1]
    np.clip(found, 0.0, None, out=found)
    return LoadLaw(low, found / found.sum(), slot.unit, B * slot.mean, float(np.sqrt(B * slot.variance)))


def _window(slot: SlotLaw, B: int) -> tuple[int, int]:
    """Return the lowest and highest load between which all but 1e-16 of the mass lies, on either side (Chernoff)."""
    size = np.flatnonzero(slot.probabilities > 0)
    weight = np.log(slot.probabilities[size])
    deviation = np.sqrt(slot.variance) * slot.unit
    need = -np.log(OUTSIDE)
    low, high = int(B * size[0]), int(B * size[-1])
    if deviation == 0:
        return low, high
    for t in np.geomspace(1e-4, 10.0, 60) / (deviation * np.sqrt(B)):
        high = min(high, int(np.ceil((B * special.logsumexp(weight + t * size) + need) / t)))
        low = max(low, int(np.floor((-B * special.logsumexp(weight - t * size) - need) / t)))
    return low, high


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
