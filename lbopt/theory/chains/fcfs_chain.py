"""FCFS sampled, and the loads modulo d of any chain: in memory that does not grow with the chain's length.

FCFS sampled: the imbalance of a long chain, chunk by chunk, in memory that does not grow with its length.

Loads modulo d of any chain on given slot streams: they follow from the ages of requests alone.

A slot whose request ends is filled at once, so which request is how old does not depend on the rule. With sizes that
are congruent modulo d, neither does a load modulo d. The ends are those of `lbopt.kernels.sampling.replete_chain` on
the same streams, drawn here anew, array by array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.sampling.fcfs_chain import Draws, Slots, begin_slots, run_slots
from lbopt.theory.chains.batch_means import (
    FEWEST_BATCHES,
    Average,
    batch_steps,
    burn_in_steps,
    means_of_batches,
    require_memory,
    slot_streams,
)
from lbopt.theory.chains.replete import Replete
from lbopt.theory.laws.normal_maximum import expected_maximum, expected_squared_maximum
from lbopt.theory.laws.slot_law import LLM, Growth, PromptLaw

#: Steps of a chunk: its four arrays stay in a core's own cache.
_CHUNK = 8192

#: stream, next_end, offset and ends: four words a slot.
_BYTES_PER_SLOT = 32


def fcfs_imbalances(
    G: int, B: int, p: float, law: PromptLaw, steps: int, seed: int, growth: Growth = LLM
) -> Iterator[NDArray[np.float64]]:
    """Yield the imbalance in tokens of steps 1 .. `steps`, after admission, in consecutive float64 arrays.

    In step 0 all slots are filled at once. Under overload the sizes that FCFS admits are independent draws of the
    prompt law whatever the arrivals are, so nothing else has to be simulated.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    steps
        Number of steps.
    growth
        Tokens that a running request gains in a step.
    """
    require_memory(G * B * _BYTES_PER_SLOT, f"a chain of G = {G} workers with B = {B} slots")
    draws = Draws(math.log1p(-p) if p < 1 else -math.inf, *law.aliases())
    slots = Slots(slot_streams(seed, G, B), *(np.empty((G, B), np.int64) for _ in range(3)))
    unit = growth.unit
    begin_slots(slots, draws, unit)
    for first in range(1, steps + 1, _CHUNK):
        length = min(_CHUNK, steps + 1 - first)
        peak, total = np.empty(length, np.int64), np.empty(length, np.int64)
        run_slots(slots, draws, unit, growth.up_to(first, length), first, peak, total)
        yield (G * peak - total) / unit


def mean_fcfs_imbalance(
    G: int, B: int, p: float, law: PromptLaw, steps: int, seed: int, growth: Growth = LLM
) -> Average:
    """Return the mean imbalance over at least `steps` steps after the burn-in, in whole batches.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    steps
        Number of steps.
    growth
        Tokens that a running request gains in a step.
    """
    cycle = len(growth.cycle)  # a batch holds whole cycles, so that no phase of the growth counts more
    length, burn_in = cycle * math.ceil(batch_steps(p) / cycle), burn_in_steps(G, B, p)
    batches = max(FEWEST_BATCHES, math.ceil(steps / length))
    chunks = fcfs_imbalances(G, B, p, law, burn_in + batches * length, seed, growth)
    return Average.of(means_of_batches(chunks, burn_in, length), batches * length)


def steps_for(G: int, p: float, accuracy: float) -> int:
    r"""Return the steps after which the mean imbalance has a standard error of about `accuracy` of itself.

    For normal loads of variance v the covariance of their maximum M and their sum is v, so the imbalance G M - sum has
    the variance G^2 Var[M] - G v. Two looks count as independent 1/p steps apart: loads have the correlation
    (1-p)^k after k steps, and their maximum less. A fifth is added for what the law's skewness spreads.
    """
    spread = G**2 * (expected_squared_maximum(G) - expected_maximum(G) ** 2) - G
    relative = math.sqrt(spread) / (G * expected_maximum(G))
    return math.ceil((1.2 * relative / accuracy) ** 2 / p)


IntArray = NDArray[np.int64]


def residues_of_steps(of: Replete, d: int, steps: int, seed: int, before: int | None = None) -> IntArray:
    """Return int64 (steps, G): the growth that every worker's requests have had, modulo d, after admission.

    Parameters
    ----------
    d
        The modulus, tokens.
    steps
        Steps that are recorded.
    seed
        Seed of the slot streams.
    before
        Steps before those; None takes `burn_in_steps`.
    """
    G, B, growth = of.G, of.B, of.growth
    burn_in = burn_in_steps(G, B, of.p) if before is None else before
    streams, log_keep = slot_streams(seed, G, B), math.log1p(-of.p)
    grown, drawn = np.zeros((G, B), np.int64), np.zeros((G, B), np.uint64)
    left = np.ones((G, B), np.int64)
    found = np.empty((steps, G), np.int64)
    for k in range(burn_in + steps):
        grown += growth[k % len(growth)]
        left -= 1
        ended = left == 0
        grown[ended] = 0
        left[ended] = _lifetimes(_words(streams[ended], 2 * drawn[ended]), log_keep)
        drawn[ended] += np.uint64(1)
        if k >= burn_in:
            found[k - burn_in] = grown.sum(axis=1) % d
    return found


def least_imbalance(residues: IntArray, d: int) -> IntArray:
    """Return int64 (steps,): min_i sum_g (r_i - r_g) mod d of residues (steps, G)."""
    peaks = residues[:, :, None]
    return np.asarray(((peaks - residues[:, None, :]) % d).sum(axis=2).min(axis=1))


def _words(start: NDArray[np.uint64], n: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return number n of each SplitMix64 stream (Steele, Lea and Flood, OOPSLA 2014)."""
    z = start + (n + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _lifetimes(words: NDArray[np.uint64], log_keep: float) -> IntArray:
    """Return draws of Geo(p) on 1, 2, ... by inversion."""
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return 1 + (np.log(uniform) / log_keep).astype(np.int64)
