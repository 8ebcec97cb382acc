"""Loads modulo d of any chain on given slot streams: they follow from the ages of requests alone.

A slot whose request ends is filled at once, so which request is how old does not depend on the rule. With sizes that
are congruent modulo d, neither does a load modulo d. The ends are those of `lbopt.kernels.sampling.replete_chain` on
the same streams, drawn here anew, array by array.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.chains.streams import slot_streams

IntArray = NDArray[np.int64]


def residues_of_steps(
    G: int, B: int, p: float, d: int, growth: tuple[int, ...], steps: int, burn_in: int, seed: int
) -> IntArray:
    """Return int64 (steps, G): the growth that every worker's requests have had, modulo d, after admission.

    Parameters
    ----------
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    d
        The modulus, tokens.
    growth
        Growth of every size in a step, tokens; several values are used in turn.
    steps, burn_in
        Steps that are recorded, and steps before.
    seed
        Seed of the slot streams.
    """
    streams, log_keep = slot_streams(seed, G, B), math.log1p(-p)
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
