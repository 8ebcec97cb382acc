r"""What sizes in steps of d leave, whatever the rule is: the law kappa(G, d) (lbopt).

Let all sizes be congruent modulo d, and let every free slot be filled. Then a load L_g modulo d does not depend on the
rule: a slot holds s + Delta(A) with s = v (mod d), A the age of its request, P(A = a) = p (1 - p)^a, and Delta(a) the
growth of the last a steps. So the residues r_g = B v + sum of Delta(A_b) over B independent slots (mod d) are
independent of each other and of every decision. A maximum M lies at least (M - L_g) mod d above load g, hence

    Imb >= min_i sum_g (r_i - r_g) mod d     in every step, for every rule, clairvoyant or not,

with equality for an exact rule whose pool lets every worker reach the largest load of its residue class up to M: a
replete pool of v, v + d, ... from the onset on, where the free slots outweigh the gaps. On average the right side is

    kappa_B(G, d) = E min_i sum_g (r_i - r_g) mod d,   r_g independent with the law of the residues.

Their law has the characters phi_j^B with phi_j = E exp(2 pi i j Delta(A) / d), j = 0 .. d - 1. For a constant growth
delta, |phi_j| < 1 unless d divides j delta: with gcd(delta, d) = 1 the residues become uniform and kappa_B tends to
kappa(G, d); with e = gcd(delta, d) to e kappa(G, d / e); with delta = 0 it is 0. The first order of the difference
vanishes, for the right side does not change when all residues turn together: the distance of kappa_B from its limit
falls as max |phi_j|^(2 B).

For G = 2, kappa(2, d) = floor(d^2 / 4) / d; for d = 2, kappa(G, 2) = E min(n, G - n) with n ~ Bin(G, 1/2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from lbopt.exceptions import InputError
from lbopt.theory.laws.slot_law import Growth

Floats = NDArray[np.float64]

#: Ways to share G workers among d residues that are listed; beyond, the mean is sampled.
MOST_LISTED = 3_000_000

#: Draws of a sampled mean, and how many at a time.
_DRAWS, _AT_A_TIME = 4_000_000, 100_000


@dataclass(frozen=True, slots=True)
class Spacing:
    """kappa_B(G, d): the least mean imbalance of any rule, tokens; `error` is its standard error, 0 if computed."""

    mean: float
    error: float


def characters(p: float, d: int, grown: Sequence[int]) -> NDArray[np.complex128]:
    """Return phi_j, complex (d,): the mean of exp(2 pi i j Delta(A) / d) over the age A of a slot's request.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    grown
        One cycle of growths, backwards from the present step, in the unit of d.
    """
    turn = 2j * np.pi * np.arange(d) / d
    cycle = len(grown)
    total = np.zeros(d, np.complex128)
    seen = 0
    for age in range(cycle):
        total += p * (1 - p) ** age * np.exp(turn * seen)
        seen += grown[age]
    found: NDArray[np.complex128] = total / (1 - (1 - p) ** cycle * np.exp(turn * seen))
    return found


def residue_law(B: int, p: float, d: int, grown: Sequence[int] = (1,)) -> Floats:
    """Return float64 (d,): the law of a load modulo d, up to a turn that all workers share.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    grown
        See `characters`.
    """
    law = np.fft.fft(characters(p, d, grown) ** B).real / d
    return np.asarray(np.maximum(law, 0.0) / np.maximum(law, 0.0).sum())


def slowest_character(p: float, d: int, grown: Sequence[int] = (1,)) -> float:
    """Return the largest |phi_j| below 1, 0 if there is none: kappa_B approaches its limit as its power 2 B.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    grown
        See `characters`.
    """
    size = np.abs(characters(p, d, grown))
    return float(size[size < 1 - 1e-12].max(initial=0.0))


def spacing_floor(G: int, law: Floats, seed: int = 0) -> Spacing:
    """Return E min_i sum_g (r_i - r_g) mod d for G independent residues of the law, float64 (d,).

    Parameters
    ----------
    law
        Probability of each residue 0 .. d - 1.
    seed
        Seed of the draws where the mean is sampled.
    """
    if G < 1 or law.ndim != 1 or law.size < 1:
        raise InputError(f"G is {G} and the law of residues has shape {law.shape}; expected a worker and a residue")
    if math.comb(G + law.size - 1, G) <= MOST_LISTED:
        counts = shared_out(G, law.size)
        weights = gammaln(G + 1) - gammaln(counts + 1).sum(axis=1) + xlogy(counts, law).sum(axis=1)
        return Spacing(float(np.exp(weights) @ _least(counts)), 0.0)
    rng = np.random.default_rng(seed)
    found = np.concatenate([_least(rng.multinomial(G, law, _AT_A_TIME)) for _ in range(_DRAWS // _AT_A_TIME)])
    return Spacing(float(found.mean()), float(found.std(ddof=1)) / math.sqrt(found.size))


def kappa(G: int, d: int) -> Spacing:
    """Return kappa(G, d) of uniform residues, in the unit of d."""
    return spacing_floor(G, np.full(d, 1 / d))


def least_left(G: int, B: int, p: float, d: int, growth: Growth) -> Spacing:
    """Return kappa_B(G, d) in tokens, a mean over the phases of a periodic growth.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    d
        The greatest common divisor of the differences of sizes, tokens.
    growth
        What every running request gains in a step.
    """
    unit, phases = growth.unit, len(growth.cycle)
    found = [
        spacing_floor(G, residue_law(B, p, d * unit, [int(part * unit) for part in growth.latest(phase)]))
        for phase in range(phases)
    ]
    error = math.hypot(*(one.error for one in found))
    return Spacing(sum(one.mean for one in found) / phases / unit, error / phases / unit)


def shared_out(G: int, d: int) -> NDArray[np.int64]:
    """Return int64 (n, d): every way to share G workers among d residues."""
    rows, left = np.zeros((1, 0), np.int64), np.array([G], np.int64)
    for _ in range(d - 1):
        ways = left + 1
        begin = np.repeat(np.cumsum(ways) - ways, ways)
        taken = np.arange(ways.sum(), dtype=np.int64) - begin
        rows = np.column_stack((np.repeat(rows, ways, axis=0), taken))
        left = np.repeat(left, ways) - taken
    return np.column_stack((rows, left))


def _least(counts: NDArray[np.int64]) -> Floats:
    """Return float64 (n,): the least sum of distances below a maximum, over all residues of the maximum.

    An unoccupied residue is never better: a maximum that is lowered to the next occupied one costs less.
    """
    d = counts.shape[1]
    away = (np.arange(d)[None, :] - np.arange(d)[:, None]) % d
    return np.asarray((counts @ away).min(axis=1), np.float64)
