"""Expert signatures: which experts a request's prompt used, as one unit vector.

The routing counts of a request, int (L, E), are transformed cell by cell, layers outside the mask are left out, and
what remains is flattened and divided by its length. The transform that ELDR chose weighs counts by

    w(l, e) = log((N + 1) / (df(l, e) + 1)),

df being how many of the N calibration requests used the expert at all: an expert that every request uses weighs 0.
A request without mass in the mask has the signature 0: its similarity to every signature is 0, also to itself.

Source: ELDR (arXiv 2607.00466), section on expert signatures; the rule for zero vectors is ours.

Signature quality rho: do requests of near signatures also decode with the same experts?

    rho = Spearman over pairs (i, j) of (1 - cos(s_i, s_j), 1 - cos(p_i, p_j))

with signatures s and decode activation p, the latter over all layers, whatever mask s has; ties get average ranks, as
in `scipy.stats.spearmanr`. Distances are rounded to 12 decimals before they are ranked: else rounding noise would
split ties, and rho would depend on the order of a sum. A cosine with a zero vector is 0.

Source: ELDR (arXiv 2607.00466), section on signature quality. Number and choice of pairs are not stated there: here
50,000 different pairs, or all where there are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.locality.workload import Floats, Ints
from lbopt.spec import unknown

#: The transforms, and which measurement each is made of.
TRANSFORMS = {
    "count": "counts",
    "count-idf": "counts",
    "sqrt-count": "counts",
    "binary": "counts",
    "gate-prob": "gate_prob",
    "gate-logit": "gate_logit",
}


@dataclass(frozen=True, slots=True)
class IdfTable:
    """How telling each expert is.

    Parameters
    ----------
    weights
        float64 (L, E), natural logarithms from 0 to log(N + 1).
    num_requests
        N, calibration requests that it was fitted on.
    """

    weights: Floats
    num_requests: int


def fit_idf(counts: ArrayLike) -> IdfTable:
    """Return the IDF table of calibration `counts`, int (N, L, E)."""
    checked = check_counts(counts)
    N = checked.shape[0]
    df = np.count_nonzero(checked, axis=0)
    return IdfTable(np.log((N + 1) / (df + 1)), N)


def transformed(transform: str, measured: ArrayLike, idf: IdfTable | None = None) -> Floats:
    """Return the cells of signatures, float64 (N, L, E), by one of `TRANSFORMS`.

    Parameters
    ----------
    measured
        (N, L, E): the counts, or for 'gate-prob' and 'gate-logit' the sum over prompt tokens of the gate's softmax or
        raw score. Only raw scores may be negative; cosines of their signatures may be too.
    idf
        The weights; for 'count-idf' alone, which needs them.

    Raises
    ------
    InputError
        if the name is unknown, the array is of another shape, negative or not finite, or weights are missing.
    """
    if transform not in TRANSFORMS:
        raise unknown("transform", transform, TRANSFORMS)
    if TRANSFORMS[transform] == "counts":
        counts = check_counts(measured)
        if transform == "sqrt-count":
            return np.sqrt(counts)
        if transform == "binary":
            return (counts > 0).astype(np.float64)
        if transform == "count":
            return counts.astype(np.float64)
        if idf is None:
            raise InputError("transform 'count-idf' needs the weights of calibration requests; fit them with fit_idf")
        if idf.weights.shape != counts.shape[1:]:
            raise InputError(
                f"the IDF table is of {idf.weights.shape} layers and experts, the counts of {counts.shape[1:]}; "
                "expected those of one model"
            )
        weighed: Floats = counts * idf.weights
        return weighed
    cells = np.array(measured, dtype=np.float64)
    _check_cube("gate scores", cells)
    if not np.isfinite(cells).all():
        raise InputError("the gate scores hold NaN or infinite values; expected finite numbers")
    if transform == "gate-prob" and (cells < 0).any():
        raise InputError(f"a sum of gate probabilities is {cells.min():g}; expected 0 or more")
    return cells


def signatures(cells: ArrayLike, layers: ArrayLike | None = None) -> Floats:
    """Return unit rows, float64 (N, N* * E), of transformed `cells`, (N, L, E); a row without mass is 0.

    Parameters
    ----------
    layers
        int (N*,), the kept layers, in the order in which they are laid side by side; None keeps all.
    """
    cube = np.asarray(cells, dtype=np.float64)
    _check_cube("cells", cube)
    kept = np.arange(cube.shape[1]) if layers is None else check_layers(layers, cube.shape[1])
    rows = cube[:, kept].reshape(cube.shape[0], -1)
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
    unit: Floats = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit


def check_layers(layers: ArrayLike, num_layers: int) -> NDArray[np.intp]:
    """Return the kept layers as indices; refuse none at all, repeated ones, and those that the model does not have."""
    kept = np.asarray(layers)
    if kept.ndim != 1 or kept.size == 0:
        raise InputError("the layer mask keeps no layer; expected at least one")
    if kept.dtype.kind not in "iu":
        raise InputError(f"the layer mask is of type {kept.dtype}; expected the numbers of the kept layers")
    if not 0 <= kept.min() <= kept.max() < num_layers or np.unique(kept).size != kept.size:
        raise InputError(f"the layer mask is {kept.tolist()}; expected different numbers from 0 to {num_layers - 1}")
    return kept.astype(np.intp)


def check_counts(counts: ArrayLike) -> Ints:
    """Return routing counts as int64 (N, L, E); refuse another shape, fractions and negative ones."""
    array = np.asarray(counts)
    _check_cube("counts", array)
    if array.dtype.kind not in "iu":
        raise InputError(f"counts are of type {array.dtype}; expected whole numbers of tokens")
    if array.min() < 0:
        raise InputError(f"a count of tokens is {array.min()}; expected 0 or more")
    return array.astype(np.int64, copy=False)


def _check_cube(name: str, array: NDArray[np.generic]) -> None:
    if array.ndim != 3 or array.size == 0:
        raise InputError(f"{name} are of shape {array.shape}; expected (requests, layers, experts), none of them 0")


#: Pairs that rho is taken over, where there are as many.
MOST_PAIRS = 50_000
#: Decimals of a distance that count.
DECIMALS = 12


def sample_pairs(num_requests: int, seed: int, most: int = MOST_PAIRS) -> Ints:
    """Return different pairs of requests, int64 (P, 2), i < j in each, in ascending order; P = min(N(N-1)/2, most)."""
    whole("number of requests", num_requests, 2)
    whole("number of pairs", most, 1)
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
