"""Signature quality rho: do requests of near signatures also decode with the same experts?

    rho = Spearman over pairs (i, j) of (1 - cos(s_i, s_j), 1 - cos(p_i, p_j))

with signatures s and decode activation p, the latter over all layers, whatever mask s has; ties get average ranks, as
in `scipy.stats.spearmanr`. Distances are rounded to 12 decimals before they are ranked: else rounding noise would
split ties, and rho would depend on the order of a sum. A cosine with a zero vector is 0.

Source: ELDR (arXiv 2607.00466), section on signature quality. Number and choice of pairs are not stated there: here
50,000 different pairs, or all where there are fewer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.locality.gate import Floats, Ints, check_whole

#: Pairs that rho is taken over, where there are as many.
MOST_PAIRS = 50_000
#: Decimals of a distance that count.
DECIMALS = 12


def sample_pairs(num_requests: int, seed: int, most: int = MOST_PAIRS) -> Ints:
    """Return different pairs of requests, int64 (P, 2), i < j in each, in ascending order; P = min(N(N-1)/2, most)."""
    check_whole("number of requests", num_requests, 2)
    check_whole("number of pairs", most, 1)
    N = num_requests
    every = N * (N - 1) // 2
    chosen = np.random.default_rng(seed).choice(every, size=min(every, most), replace=False, shuffle=False)
    chosen.sort()
    # pairs are numbered row by row; row i starts at i * (2N - i - 1) / 2
    starts = np.arange(N, dtype=np.int64) * (2 * N - np.arange(N, dtype=np.int64) - 1) // 2
    i = np.searchsorted(starts, chosen, side="right") - 1
    i = np.minimum(i, N - 2)
    return np.stack([i, chosen - starts[i] + i + 1], axis=1).astype(np.int64)


def cosine_distances(rows: ArrayLike, pairs: Ints) -> Floats:
    """Return 1 - cosine of each pair of `rows`, float64 (P,), rounded to 12 decimals; rows are of any length >= 0.

    Parameters
    ----------
    rows
        (N, d), or (N, L, E), which is flattened.
    pairs
        int64 (P, 2).
    """
    table = np.asarray(rows, dtype=np.float64)
    table = table.reshape(table.shape[0], -1)
    if not np.isfinite(table).all():
        raise InputError("vectors hold NaN or infinite values; expected finite numbers")
    length = np.sqrt(np.einsum("ij,ij->i", table, table))
    unit = np.divide(table, length[:, np.newaxis], out=np.zeros_like(table), where=length[:, np.newaxis] > 0)
    cosines = np.empty(len(pairs))
    step = max(1, 2**22 // table.shape[1])
    for start in range(0, len(pairs), step):
        some = pairs[start : start + step]
        cosines[start : start + step] = np.einsum("ij,ij->i", unit[some[:, 0]], unit[some[:, 1]])
    return np.round(1 - cosines, DECIMALS)


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rho with average ranks; 0 where one of them is constant, which says nothing of the other."""
    from scipy.stats import rankdata

    # twice an average rank is whole, so that equal orders give equal values to the last bit
    u, v = (2 * rankdata(np.asarray(a)) - (np.size(a) + 1) for a in (x, y))
    spread = float((u @ u) * (v @ v))
    return float(u @ v) / np.sqrt(spread) if spread else 0.0


def signature_quality(rows: ArrayLike, decode: ArrayLike, pairs: Ints) -> float:
    """Return rho of signatures `rows`, (N, d), against decode activation, (N, L, E), over `pairs`, int64 (P, 2).

    Raises
    ------
    InputError
        if all signatures are zero, the numbers of requests differ, or a pair names a request that is not there.
    """
    table, activation = np.asarray(rows, dtype=np.float64), np.asarray(decode, dtype=np.float64)
    check_pairs(pairs, table.shape[0], activation.shape[0])
    if not table.any():
        raise InputError(
            f"all {table.shape[0]} signatures are zero; expected counts on experts that not all requests use"
        )
    return rank_correlation(cosine_distances(table, pairs), cosine_distances(activation, pairs))


def check_pairs(pairs: Ints, num_signatures: int, num_activations: int) -> None:
    """Refuse pairs of requests that are not there, and signatures and activations of different numbers of requests."""
    if num_signatures != num_activations:
        raise InputError(
            f"there are {num_signatures} signatures and {num_activations} decode activations; "
            "expected one of each a request"
        )
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] < 2:
        raise InputError(f"pairs are of shape {array.shape}; expected (P, 2) with two pairs or more")
    if array.min() < 0 or array.max() >= num_signatures:
        raise InputError(f"a pair names request {array.max()}; expected 0 to {num_signatures - 1}")
