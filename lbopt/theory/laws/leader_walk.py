"""What is left by the exact rule below the onset: the leading term, and the walk of two workers' lead.

What is left by the exact rule below the onset: a law where the theorems say nothing (lbopt).

Far below B* the ends of a step move loads by much more than its admissions can mend. The optimum for a replete pool
(`replete`) then gives the smallest prompts to the worker in front, which sets the pace, and the largest to all others.
So the worker in front drifts, against every other, by

    gamma = p B (s_max - 1)   tokens a step,

and no other worker is steered. Each load makes a random walk: an end takes away s_max + A + 1 tokens, of a request that
came in with the largest prompt, and brings in s_max, so a step has the variance v = p B E[(A+1)^2] = p B (2-p)/p^2.
Workers with equal noise of which the leading one alone has a drift are a model of Atlas (Banner, Fernholz and Karatzas
2005): in the long run the gap between ranks k and k+1 is exponential with mean v G / (2 gamma (G - k)), whatever the
others are. The imbalance counts that gap G - k times, so its G - 1 gaps contribute equally:

    E[Imb] = G (G-1) v / (2 gamma) = G (G-1) (2-p) / (2 p^2 (s_max - 1)).

It does not depend on B. FCFS's imbalance grows as sqrt(B), so the improvement does as well, with another constant than
Theorem 2's. Three things are left out, and bound the range. With b = (2-p) / (p^2 (s_max-1)^2), slots:

* loads also forget themselves, at the rate p; that is slow against the drift where B is well above G^2 b;
* a step's admissions mend a small gap at once; gaps are larger than that where B is well below b / p, and beyond it the
  imbalance collapses to nothing: b / p is of the order of the onset B*;
* a walk whose steps are as long as the gaps is no diffusion; steps are short where b is well above 1, which says that
  outputs are longer than the longest prompt.

What the exact rule leaves to two workers below the onset, with the terms of finite steps (lbopt).

`leader_drift` takes the limit in which steps are short against the gap, a slot's prompt small against its output, and
loads never forget. Here no such limit is taken: the lead X of the worker in front is a walk on the half-line, and its
stationary law is solved for. Let w = s_max - 1; at the leader c_1 requests end and at the other c_2, both of law
Bin(B, p).

1. An end takes a' = u + A + 1 tokens away, u the prompt of the request and A its age, P(A = a) = p (1-p)^a. The loads
   before admission have given the lead (1-p) X on average, whatever they consist of; ends are drawn around that.
2. With prompts of 1 for the leader and of s_max for the other the lead would be

       z = (1-p) X - sum_{c_1} (a' - 1) + sum_{c_2} (a' - s_max).

   Where z > 0 that is the optimum. Where z < -w (c_1 + c_2) the workers change places: the lead is |z| - w (c_1 + c_2).
   In between a step makes both loads equal, with the least peak.
3. The law of u follows from the walk, for the leader is known after the ends: who loses a long request falls behind and
   gets the largest prompt. It begins with 1 or s_max, each as often, and is put in again until it stays.

Two things remain approximate. Both workers are given the same law of u, and it is taken to be independent of X beyond
the mean in 1. What that costs is measured by the claim `leader-drift`.

On a lattice of w / k tokens, masses are split between neighbours so that means stay. With one end a step, overshoots o
of a law of mean theta = 1/p, and gaps much wider than these, the walk gives in closed form

    E[X] = (v - loss) / (2 gamma),  gamma = p B w,  loss = 2 gamma theta tanh(w / (2 theta)),

which follows from E[X'] = E[X] and E[X'^2] = E[X^2]: the leading term of `leader_drift` less about w / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lbopt.exceptions import InputError


def step_noise(p: float) -> float:
    """Return E[(A+1)^2] = (2-p)/p^2, tokens squared: what one end adds to the variance of a load."""
    return (2 - p) / p**2


def levelled_imbalance(G: int, p: float, s_max: int) -> float:
    """Return the law's imbalance in tokens, for any number of slots in its range."""
    return G * (G - 1) * step_noise(p) / (2 * (s_max - 1))


def natural_slots(p: float, s_max: int) -> float:
    """Return b = (2-p) / (p^2 (s_max-1)^2), in slots: the law needs it to be well above 1."""
    return step_noise(p) / (s_max - 1) ** 2


def levelled_range(G: int, p: float, s_max: int) -> tuple[float, float]:
    """Return the slots well above which, and well below which, the law holds."""
    natural = natural_slots(p, s_max)
    return G**2 * natural, natural / p


Floats = NDArray[np.float64]

#: Cells of the lattice in one mean lead of the leading law, and mean leads that the lattice reaches.
_CELLS, _REACH = 40, 10

#: The widest lattice and the most ends that one worker has in a step on average; beyond, the law takes minutes.
MOST_NATURAL, MOST_ENDS = 200.0, 10.0

#: Counts of ends and ages that are less probable than this in total are left out.
_RARE = 1e-8

#: The prompts' law is put in anew until the lead moves by less than this share, so many times at most.
_SETTLED, _MOST_ROUNDS = 5e-4, 12


@dataclass(frozen=True, slots=True)
class LeadLaw:
    """The stationary lead of two workers.

    Parameters
    ----------
    mean
        Mean lead, which is the mean imbalance, tokens.
    level
        Probability that both loads are equal.
    prompt
        Mean admitted prompt, tokens.
    """

    mean: float
    level: float
    prompt: float


class _Walk:
    """The walk on its lattice of `cell` tokens; densities are float64 (size,), negative places from the end."""

    def __init__(self, B: int, p: float, s_max: int) -> None:
        width, mean = s_max - 1, levelled_imbalance(2, p, s_max)
        self.p, self.s_max = p, s_max
        self.rungs = max(1, round(_CELLS * width / mean))
        self.cell = width / self.rungs
        self.places = math.ceil(_REACH * mean / self.cell)
        self.ages = np.arange(math.ceil(math.log(_RARE) / math.log1p(-p)))
        self.of_age = p * (1 - p) ** self.ages / -np.expm1(self.ages.size * math.log1p(-p))
        law = stats.binom(B, p)
        self.least, most = int(law.ppf(_RARE)), int(law.isf(_RARE))
        self.counts = np.asarray(law.pmf(np.arange(self.least, most + 1)))
        longest = (self.ages.size + s_max) / self.cell + 2 * most * self.rungs
        self.size = 1 << math.ceil(math.log2(4 * self.places + 2 * longest))

    def jumps(self, prompts: Floats) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return the transforms of what one end of the leader, and one of the other, does to z.

        `prompts` is float64 (rungs + 1,): the probabilities of 1, 1 + cell, ..., s_max.
        """
        sizes = 1 + self.cell * np.arange(self.rungs + 1)
        leader, other = np.zeros(self.size), np.zeros(self.size)
        for u, share in zip(sizes, prompts, strict=True):
            leader += share * self.spread(1 - u - 1 - self.ages, self.of_age)
            other += share * self.spread(u + 1 + self.ages - self.s_max, self.of_age)
        return np.fft.rfft(leader), np.fft.rfft(other)

    def powers(self, one: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return complex (counts, size / 2 + 1): what each count of ends does, times the count's probability."""
        found = np.empty((self.counts.size, one.size), np.complex128)
        power = one**self.least
        for i, share in enumerate(self.counts):
            found[i] = share * power
            power = power * one
        return found

    def spread(self, tokens: Floats, weights: Floats) -> Floats:
        """Return the density of values in tokens, each split between its two neighbours on the lattice."""
        place = np.floor(tokens / self.cell).astype(np.int64)
        upper = tokens / self.cell - place
        density = np.bincount(place % self.size, weights * (1 - upper), self.size)
        return np.asarray(density + np.bincount((place + 1) % self.size, weights * upper, self.size))

    def stationary(self, leader: NDArray[np.complex128], other: NDArray[np.complex128]) -> tuple[Floats, Floats]:
        """Return float64 (places,): the stationary law of the lead, and the same after it was forgotten in part."""
        of_leader, of_other = self.powers(leader), self.powers(other)
        sums = np.zeros((2 * self.counts.size - 1, leader.size), np.complex128)  # by the ends of both workers
        for i, one in enumerate(of_leader):
            sums[i : i + self.counts.size] += one * of_other
        straight, turned = np.fft.irfft(sums.sum(axis=0), self.size), np.zeros(self.size)
        for i, term in enumerate(sums):
            turned += np.roll(np.fft.irfft(term, self.size), self.rungs * (2 * self.least + i))
        x = np.arange(self.places)
        move = straight[(x[None, :] - x[:, None]) % self.size] + turned[-(x[None, :] + x[:, None]) % self.size]
        move[:, 0] = 0.0
        move[:, 0] = 1.0 - move.sum(axis=1)  # all landings in between, and what the lattice does not reach
        kept = np.zeros((self.places, self.places))
        low = ((1 - self.p) * x).astype(np.int64)
        upper = (1 - self.p) * x - low
        kept[x, low] += 1 - upper
        kept[x, np.minimum(low + 1, self.places - 1)] += upper
        balance = (kept @ move).T - np.eye(self.places)
        balance[-1] = 1.0
        law = np.linalg.solve(balance, np.eye(self.places)[-1])
        return np.asarray(law), np.asarray(law @ kept)

    def prompts(self, before: Floats, leader: NDArray[np.complex128], other: NDArray[np.complex128]) -> Floats:
        """Return the law of an admitted prompt, float64 (rungs + 1,)."""
        start = np.fft.rfft(before, self.size)
        of_leader, of_other = self.powers(leader), self.powers(other)
        z = np.arange(self.size)
        z = np.where(z < self.size // 2, z, z - self.size)
        found = np.zeros(self.rungs + 1)
        for c, one in enumerate(start * of_leader, self.least):
            for e, two in enumerate(of_other, self.least):
                if c + e == 0:
                    continue
                landed = np.fft.irfft(one * two, self.size)
                ahead, behind = landed[z > 0].sum(), landed[z < -self.rungs * (c + e)].sum()
                found[0] += ahead * c + behind * e
                found[-1] += ahead * e + behind * c
                short = np.arange(self.rungs * (c + e) + 1)  # by how much the leader would fall behind
                share = landed[-short % self.size]
                keeps = short <= self.rungs * e
                found[0] += c * share[keeps].sum() + e * share[~keeps].sum()
                if e:
                    self._add(found, self.rungs - short[keeps] / e, e * share[keeps])
                if c:
                    self._add(found, (short[~keeps] - self.rungs * e) / c, c * share[~keeps])
        found = np.maximum(found, 0.0)
        return np.asarray(found / found.sum())

    @staticmethod
    def _add(found: Floats, rung: Floats, weights: Floats) -> None:
        low = np.minimum(np.floor(rung + 1e-9).astype(np.int64), found.size - 2)
        np.add.at(found, low, weights * (1 - (rung - low)))
        np.add.at(found, low + 1, weights * (rung - low))


def lead_law(B: int, p: float, s_max: int) -> LeadLaw:
    """Return the stationary lead of two workers of B slots under the exact rule, replete pool of all sizes."""
    natural = natural_slots(p, s_max)
    if not 0 < p < 1 or natural > MOST_NATURAL or p * B > MOST_ENDS:
        raise InputError(
            f"the law of the lead needs 0 < p < 1, b = (2-p)/(p^2 (s_max-1)^2) of at most {MOST_NATURAL:g} and p B of "
            f"at most {MOST_ENDS:g}; p is {p:g}, b is {natural:.3g} and p B is {p * B:.3g}"
        )
    walk = _Walk(B, p, s_max)
    prompts = np.zeros(walk.rungs + 1)
    prompts[[0, -1]] = 0.5
    mean = 0.0
    for _ in range(_MOST_ROUNDS):
        jumps = walk.jumps(prompts)
        law, before = walk.stationary(*jumps)
        prompts = walk.prompts(before, *jumps)
        last, mean = mean, float(walk.cell * (law @ np.arange(walk.places)))
        if abs(mean - last) < _SETTLED * mean:
            break
    return LeadLaw(mean, float(law[0]), 1 + walk.cell * float(prompts @ np.arange(walk.rungs + 1)))
