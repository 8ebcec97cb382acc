"""A few rows that most of the centroids of a routing table nearly are sums of.

By a request's products with these rows a router bounds its cosines to all centroids, and leaves out those that cannot
be in the band (`lbopt/kernels/locality/band`). The rows are the first principal directions of the centroids, rounded to
16 bits; what they leave of each centroid is reckoned from the rounded ones, so the bounds hold for any rows at all, and
good rows merely leave out more.

How many rows pay is estimated for requests whose cosine to one centroid is that of calibration requests, and which are
otherwise at right angles to all centroids: that leaves out fewer than real requests do, whose directions are those of
other requests of their kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.locality.band import SCALE
from lbopt.locality.gate import Floats

#: Numbers of rows that are tried; 0 = every product is taken.
_NUMBERS = (0, 2, 4, 8, 12, 16, 24, 32)
#: Of the products that are taken without rows, how many may be left for the rows to pay.
_PAYS = 0.9
#: Width of the band that is reckoned with, and the cosine to the nearest centroid where nobody knows it.
_WIDTH, _COSINE = 0.1, 0.7
#: Directions of less than this share of the greatest are rounding.
_NEGLIGIBLE = 1e-9


class Basis(NamedTuple):
    """Rows, and what they leave of each centroid; the names are those of the kernel's `Band`.

    Parameters
    ----------
    basis
        int16 (R, d), times SCALE.
    parts, steep
        float64 (K, R) and (K,), each centroid's share of each row, and the length of these.
    rest, leak
        float64 (K,), length of what is left of a centroid, and of that one's products with the rows.
    skew
        float64 (1,), by how much the rows are not orthonormal.
    """

    basis: NDArray[np.int16]
    parts: Floats
    steep: Floats
    rest: Floats
    leak: Floats
    skew: Floats


def basis_of(centroids: Floats, cosine: float | None = None, number: int | None = None) -> Basis:
    """Return rows for centroids.

    Parameters
    ----------
    centroids
        float64 (K, d).
    cosine
        Of a request to the nearest centroid, as a rule; None where nobody knows.
    number
        Rows, at most; None = as many as pay.
    """
    products = centroids @ centroids.T
    sizes, directions = np.linalg.eigh(products)
    sizes, directions = sizes[::-1], directions[:, ::-1]
    known = int((sizes > _NEGLIGIBLE * max(sizes[0], 0.0)).sum()) if sizes[0] > 0 else 0
    along = directions[:, :known] * np.sqrt(sizes[:known])  # (K, known), each centroid in the directions
    rows = _paying(along, np.diag(products), cosine or _COSINE, known) if number is None else min(number, known)
    exact = (directions[:, :rows] / np.sqrt(sizes[:rows])).T @ centroids
    fixed = np.rint(exact * SCALE).astype(np.int16)
    basis = fixed / SCALE
    parts = np.ascontiguousarray(centroids @ basis.T)
    left = centroids - parts @ basis
    return Basis(
        fixed,
        parts,
        np.linalg.norm(parts, axis=1),
        np.linalg.norm(left, axis=1),
        np.linalg.norm(left @ basis.T, axis=1),
        np.array([np.linalg.norm(basis @ basis.T - np.eye(rows)) if rows else 0.0]),
    )


def _paying(along: Floats, squares: Floats, cosine: float, known: int) -> int:
    """Return how many rows leave the fewest products, themselves among them; 0 where they would leave nearly all."""
    K = len(squares)
    costs = {0: _PAYS * K}
    for number in _NUMBERS[1:]:
        if number > known:
            break
        near = along[:, :number]
        own = np.einsum("ij,ij->i", near, near)
        rest = np.sqrt(np.maximum(squares - own, 0.0))
        beside = np.sqrt(np.maximum(1.0 - cosine * cosine * own, 0.0))
        most = cosine * (near @ near.T) + beside[:, np.newaxis] * rest
        costs[number] = number + (most >= cosine - _WIDTH).sum() / K
    return min(costs, key=lambda number: costs[number])
