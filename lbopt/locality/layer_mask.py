"""The layer mask: which layers make signatures that foretell decode best.

Greedy forward selection: start with no layer, add in each step the layer with which rho is greatest, go on through all
of them, and keep the first N* where the curve of rho peaks; it is not monotone, so the first fall is no reason to stop.
Ties: the lowest layer in a step, the fewest layers at the peak.

Products of all pairs are computed once a layer, so that a trial costs a few operations a pair instead of a
signature; see `lbopt.kernels.locality.forward_selection` for how most trials need no ranking.

Source: ELDR (arXiv 2607.00466), section on the layer mask; the tie rules are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.forward_selection import forward_selection
from lbopt.kernels.locality.pair_products import pair_products
from lbopt.locality.gate import Floats, Ints
from lbopt.locality.quality import DECIMALS, check_pairs

#: Sums of products of doubled ranks are exact in float64 up to here.
MOST_PAIRS_RANKED = 100_000


@dataclass(frozen=True, slots=True)
class LayerMask:
    """Layers in the order in which they were chosen, and what each step brought.

    Parameters
    ----------
    order
        int64 (L,).
    curve
        float64 (L,), rho with the first 1, 2, ... L of them.
    """

    order: Ints
    curve: Floats

    @property
    def num_kept(self) -> int:
        """N*, the fewest layers with which rho is greatest."""
        return int(np.argmax(self.curve)) + 1

    @property
    def kept(self) -> Ints:
        """The kept layers, int64 (N*,), ascending."""
        return np.sort(self.order[: self.num_kept])

    @property
    def quality(self) -> float:
        """Rho of the kept layers."""
        return float(self.curve[self.num_kept - 1])


def fit_layer_mask(cells: ArrayLike, decode: ArrayLike, pairs: Ints, weights: Floats | None = None) -> LayerMask:
    """Choose layers for transformed `cells` by rho against `decode`.

    Parameters
    ----------
    cells, decode
        (N, L, E) both: cells as `transformed` returns them, and decode activation.
    pairs
        int64 (P, 2), as `sample_pairs` returns them.
    weights
        float64 (L, E), by which cells are yet to be multiplied: with IDF weights, cells may be the counts themselves.

    Raises
    ------
    InputError
        if all signatures are zero, decode activation does not tell any two pairs apart, or shapes differ.
    """
    cube, activation = _cube("cells", cells), _cube("decode activation", decode)
    check_pairs(pairs, cube.shape[0], activation.shape[0])
    if len(pairs) > MOST_PAIRS_RANKED:
        raise InputError(f"rho is to be taken over {len(pairs)} pairs; expected at most {MOST_PAIRS_RANKED}")
    weighs = _weights(cube) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if weighs.shape != cube.shape[1:]:
        raise InputError(f"weights are of shape {weighs.shape}; expected those of cells, {cube.shape[1:]}")
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    fixed = _target_ranks(activation, pairs)
    products, squares = _products(cube, weighs, pairs)
    if not squares.any():
        raise InputError(
            f"all {cube.shape[0]} signatures are zero; expected counts on experts that not all requests use"
        )
    order, curve = np.empty(cube.shape[1], dtype=np.int64), np.empty(cube.shape[1])
    forward_selection(products, squares, pairs, fixed, order, curve)
    return LayerMask(order, curve)


def _target_ranks(activation: Floats, pairs: Ints) -> Floats:
    from scipy.stats import rankdata

    products, squares = (a.sum(axis=0) for a in _products(activation, _weights(activation), pairs))
    length = np.sqrt(squares)
    lengths = length[pairs[:, 0]] * length[pairs[:, 1]]
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    fixed: Floats = 2 * rankdata(np.round(1 - cosines, DECIMALS)) - (len(pairs) + 1)
    if not fixed.any():
        raise InputError("all pairs of requests are at the same distance in decode; expected activation that differs")
    return fixed


def _weights(cube: NDArray[Any]) -> Floats:
    return np.ones(cube.shape[1:])


def _products(cube: NDArray[Any], weights: Floats, pairs: Ints) -> tuple[Floats, Floats]:
    products, squares = np.empty((cube.shape[1], len(pairs))), np.empty((cube.shape[1], cube.shape[0]))
    pair_products(cube, weights, pairs, products, squares)
    return products, squares


def _cube(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return int64 or float64 (N, L, E)."""
    given = np.asarray(values)
    cube = np.ascontiguousarray(given, dtype=np.int64 if given.dtype.kind in "iu" else np.float64)
    if cube.ndim != 3 or cube.size == 0:
        raise InputError(f"{name} are of shape {cube.shape}; expected (requests, layers, experts), none of them 0")
    if cube.dtype.kind == "f" and not np.isfinite(cube).all():
        raise InputError(f"{name} hold NaN or infinite values; expected finite numbers")
    return cube
