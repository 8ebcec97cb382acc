"""Points and moving centres: costs in integers, and where the centres go, in the cheaper of two ways.

As vectors: products of points and centres are taken anew in every round, N * K * d multiplications. By products of
points: where a point has more entries than there are points, the N * N products of points with each other are taken
once, and a centre is only ever the sum of some points, so that its products with all points are sums of known ones: a
round takes N * N additions, whatever d is. Both give the same but for rounding, some 1e-16 of a cost.

Costs become integers as `scale` says, but the exponent comes from a bound of the costs and not from the largest of
them: so it is the same in all rounds, prices of one round are those of the next, totals compare exactly, and a cost is
written once. The bound is (max |x| + max |c|)^2 for squared distances, 2 for 1 - cosine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.scale import exponent_below, largest_cost
from lbopt.kernels.assignment.costs import few_products, integer_costs, move_sums, squared_distances
from lbopt.model.integers import IntArray

Floats = NDArray[np.float64]

#: Products that are taken at a time, to be still in the cache when they become costs.
_PRODUCTS_AT_A_TIME = 1 << 16

#: Up to so many entries of a point its products are taken by a plain loop.
_FEW = 32

#: A sum of unit vectors that is shorter than this share of their number is rounding, and no direction.
_DIRECTION = 1e-7


#: Squares of the tiniest rows are finer than the largest power of two can scale them.
_FINEST = 1000


class Points:
    """Points of one data set, by vectors or by products, as fits.

    Parameters
    ----------
    rows
        float64 (N, d), contiguous; of length 1 or 0 for cosines.
    cosine
        Whether a cost is 1 - cosine; else it is a squared distance.
    """

    def __init__(self, rows: Floats, cosine: bool) -> None:
        self.rows, self.cosine = rows, cosine
        self.gram: Floats | None = rows @ rows.T if rows.shape[1] > rows.shape[0] else None
        self.squares: Floats = np.einsum("ij,ij->i", rows, rows)
        self.ahead: Floats = np.ones(len(rows)) if cosine else self.squares

    def costs_at_point(self, j: int) -> Floats:
        """Return the cost of every point at a centre on point j, float64 (N,)."""
        products = self.rows @ self.rows[j] if self.gram is None else self.gram[j]
        costs: Floats = np.maximum(
            1.0 - products if self.cosine else self.squares + self.squares[j] - 2.0 * products, 0.0
        )
        return costs

    def total_cost(self, labels: IntArray, centers: Floats) -> float:
        """Return what the labels cost at these centres."""
        squares = np.empty(len(labels))
        squared_distances(self.rows, labels, centers, squares)
        # between vectors of length 1, 1 - cosine is half the squared distance; a vector of length 0 costs 1
        return float(np.where(self.squares > 0, squares / 2, 1.0).sum() if self.cosine else squares.sum())


class Clusters:
    """K centres among points, and the integer costs of all points at them.

    Parameters
    ----------
    points
        N points.
    centers
        float64 (K, d), where the centres are at first; or int64 (K,), the points that they are on.
    """

    def __init__(self, points: Points, centers: Floats | IntArray) -> None:
        N, K = len(points.rows), len(centers)
        on = centers if centers.ndim == 1 else None
        self._points = points
        self._centers: Floats = points.rows[on] if on is not None else np.array(centers, dtype=np.float64)
        self._beside: Floats = np.einsum("ij,ij->i", self._centers, self._centers)
        self._products: Floats | None = None  # (K, N) of centres and points, where the centres are known by them alone
        if points.gram is not None:
            self._products = points.gram[on] if on is not None else np.ascontiguousarray(self._centers @ points.rows.T)
        self._labels: IntArray = np.full(N, -1, dtype=np.int64)
        self._moved = np.zeros(K, dtype=np.bool_)
        self._left: dict[int, IntArray] = {}  # whom a centre was of last that has moved before, and stays now
        self._sums = np.zeros((K, (points.rows if points.gram is None else points.gram).shape[1]))
        far = math.sqrt(float(points.squares.max()))
        bound = 2.0 if points.cosine else (far + max(far, math.sqrt(float(self._beside.max())))) ** 2
        self.exponent = min(exponent_below(1.0000001 * bound, largest_cost(N, K)), _FINEST)
        self.costs: IntArray = np.empty((N, K), dtype=np.int64)
        self.update()

    def update(self) -> None:
        """Write `costs`, int64 (N, K), of all points at the present centres."""
        points, (N, K) = self._points, self.costs.shape
        times = 1.0 if points.cosine else 2.0
        beside = np.zeros(K) if points.cosine else self._beside
        step = max(1, _PRODUCTS_AT_A_TIME // K)
        room = np.empty((min(step, N), K))
        few = self._products is None and points.rows.shape[1] <= _FEW
        across = np.ascontiguousarray(self._centers.T) if few else None
        for start in range(0, N, step):
            some = slice(start, min(start + step, N))
            products = room[: some.stop - start]
            if self._products is not None:
                products[:] = self._products[:, some].T
            elif across is not None:
                few_products(points.rows[some], across, products)
            else:
                np.matmul(points.rows[some], self._centers.T, out=products)
            integer_costs(products, points.ahead[some], beside, times, math.ldexp(1.0, self.exponent), self.costs[some])

    def move(self, labels: IntArray) -> None:
        """Move every centre to what is best for its points; an empty cluster, or one without direction, stays."""
        points, K = self._points, len(self._centers)
        before = self._labels
        counts = np.bincount(labels, minlength=K).astype(np.float64)
        if self._products is None or not points.cosine:  # what is taken off leaves its rounding: safe among cosines
            before = np.full_like(before, -1)
            self._sums[:] = 0.0
        move_sums(points.rows if points.gram is None else points.gram, before, labels, self._sums)
        if self._products is None:
            squares = np.einsum("ij,ij->i", self._sums, self._sums)
        else:
            squares = np.bincount(labels, weights=self._sums[labels, np.arange(labels.size)], minlength=K)
        size = np.sqrt(np.maximum(squares, 0.0)) if points.cosine else counts
        moved = size > _DIRECTION * counts
        places = self._centers if self._products is None else self._products
        np.divide(self._sums, size[:, np.newaxis], out=places, where=moved[:, np.newaxis])
        np.divide(squares, size**2, out=self._beside, where=moved)
        for k in np.flatnonzero(self._moved & ~moved):
            self._left[int(k)] = np.flatnonzero(self._labels == k)
        self._labels, self._moved = labels, moved

    def centers(self) -> Floats:
        """Return the present centres, float64 (K, d)."""
        if self._products is not None:
            for k in range(len(self._centers)):
                if self._moved[k] or k in self._left:
                    members = np.flatnonzero(self._labels == k) if self._moved[k] else self._left[k]
                    total = self._points.rows[members].sum(axis=0)
                    self._centers[k] = total / (np.linalg.norm(total) if self._points.cosine else members.size)
        return self._centers
