"""Points and moving centres: costs in integers, and where the centres go, in the cheaper of two ways.

As vectors: products of points and centres are taken anew in every round, N * K * d multiplications. By products of
points: where a point has more entries than there are points, the N * N products of points with each other are taken
once, and a centre is only ever the sum of some points, so that its products with all points are sums of known ones: a
round takes N * N additions, whatever d is. Both give the same but for rounding, some 1e-16 of a cost.

Costs become integers as `scale` says, but the exponent comes from a bound of the costs and not from the largest of
them: so it is the same in all rounds, prices of one round are those of the next, totals compare exactly, and a cost is
written once. The bound is (max |x| + max |c|)^2 for squared distances, 2 for 1 - cosine.

Balanced K-means: clusters of bounded size whose total distance to their centres is least, by two exact sub-steps.

Points go to centres at least total cost within the bounds (as in `balanced_assignment`), centres move to what is best
for their points, and neither step can raise the total. So the total falls to a local optimum; several starts are made
and the best is kept. Prices of one assignment start the next.

Euclidean: costs are squared distances, a centre is the mean of its points. Cosine: rows are scaled to length one,
costs are 1 - cosine, a centre is the direction of the sum of its points, which is the exact minimiser: over unit
vectors sum (1 - <s, mu>) = n - <m, mu> is least at mu parallel to m. Malinen and Franti, Balanced K-means for
clustering (2014), solve the same assignment by the Hungarian method on a matrix of N columns; ELDR (arXiv 2607.00466)
clusters expert signatures so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.costs import Pairs, exponent_below, largest_cost
from lbopt.assignment.level import Room, settled
from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import few_products, integer_costs, move_sums, squared_distances
from lbopt.kinds import fits, kinds_of, refuse_kinds, seen
from lbopt.model.integers import IntArray, real_array
from lbopt.spec import unknown

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


METRICS = ("euclidean", "cosine")

#: Squared distances between rows of at most this size are finite; lengths below its inverse lose digits in the square.
_LARGEST = 1e150


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One start, followed to where the total falls no more."""

    labels: IntArray
    clusters: Clusters
    totals: list[float]


@dataclass(eq=False)
class BalancedKMeans:
    """K clusters of bounded size, with the conventions of scikit-learn.

    Parameters
    ----------
    n_clusters
        K.
    size_max
        Points of a cluster at most; None = ceil(N / K).
    size_min
        Points of a cluster at least; 0 lets clusters be empty where the data allow it.
    metric
        "euclidean" or "cosine".
    n_init
        Starts, each with centres drawn from the points far from those drawn before (k-means++).
    init
        float64 (K, d), centres to start from once, instead.
    max_iter
        Rounds of both sub-steps at most.
    tol
        A start ends when the total falls by no more than this share of its first total.
    random_state
        Seed of the starts.

    Attributes
    ----------
    labels_
        int64 (N,).
    cluster_centers_
        float64 (K, d); of length one for "cosine". An empty cluster keeps the centre that it had last.
    inertia_
        Total cost of the labels at these centres: squared distances, or 1 - cosine.
    totals_
        The total after every assignment of the best start, which never rises but by rounding.
    n_iter_
        Rounds of the best start.
    """

    n_clusters: int = 8
    _: KW_ONLY
    size_max: int | None = None
    size_min: int = 0
    metric: str = "euclidean"
    n_init: int = 5
    init: Any = None
    max_iter: int = 100
    tol: float = 1e-9
    random_state: int = 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **given: Any) -> BalancedKMeans:
        """Set parameters by name."""
        for name, value in given.items():
            if name not in self.get_params():
                raise unknown("parameter of BalancedKMeans", name, self.get_params())
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: object = None) -> BalancedKMeans:
        """Cluster the rows of `X`, real (N, d); `y` is not looked at.

        Raises
        ------
        InputError
            Rows that are not finite, fewer rows than clusters, bounds that cannot hold.
        """
        points = self._points(X)
        self._check(points)
        cosine = self.metric == "cosine"
        # far from zero, squares would drown distances: seen from one of the points they do not, and integers stay exact
        origin = np.zeros(points.shape[1]) if cosine else points[0].copy()
        known = Points(points if cosine else points - origin, cosine)
        starts = self._starts(known, origin)
        best = min((self._follow(known, centers) for centers in starts), key=lambda run: run.totals[-1])
        centers = best.clusters.centers()
        self.labels_ = best.labels
        self.cluster_centers_ = centers + origin
        self.totals_ = best.totals
        self.n_iter_ = len(best.totals)
        self.inertia_ = known.total_cost(best.labels, centers)
        return self

    def fit_predict(self, X: Any, y: object = None) -> NDArray[np.int64]:
        """Cluster the rows and return their labels."""
        return self.fit(X).labels_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest centre of each row, whatever the sizes are: a new point has no quota."""
        if not hasattr(self, "cluster_centers_"):
            raise InputError("this BalancedKMeans has no centres yet; call fit first")
        points = self._points(X)
        if points.shape[1] != self.cluster_centers_.shape[1]:
            raise InputError(f"rows have {points.shape[1]} entries; the centres have {self.cluster_centers_.shape[1]}")
        if self.metric == "cosine":
            nearest: IntArray = (points @ self.cluster_centers_.T).argmax(axis=1)
        else:
            centers = self.cluster_centers_ - self.cluster_centers_[0]  # see `fit`
            products = (points - self.cluster_centers_[0]) @ centers.T
            nearest = (np.einsum("ij,ij->i", centers, centers) - 2.0 * products).argmin(axis=1)
        return nearest

    def _points(self, X: Any) -> Floats:
        for name in ("size_max", "size_min"):
            given = getattr(self, name)
            if not fits(given, kinds_of(type(self))[name]):
                raise InputError(
                    f"{name} is {seen(given)}; expected one integer for all clusters: "
                    "`balanced_assignment` takes one for each centre"
                )
        refuse_kinds(self)
        if self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)
        points = real_array("X", X)
        if points.ndim != 2 or not points.size:
            raise InputError(f"X has shape {points.shape}; expected rows of points, (N, d) with both above 0")
        if not np.isfinite(points).all():
            row = np.flatnonzero(~np.isfinite(points).all(axis=1))[0]
            raise InputError(f"row {row} of X holds a value that is not finite")
        if (largest := float(max(points.max(), -points.min()))) > _LARGEST:
            raise InputError(f"X holds {largest:g} in size, whose square is beyond float64; divide all by a number")
        if self.metric == "cosine":
            return _unit(points)
        return points

    def _check(self, points: Floats) -> None:
        N, K = len(points), self.n_clusters
        if not 1 <= K <= N:
            raise InputError(f"n_clusters is {K}; expected 1 to the {N} rows of X")
        size_max = self._size_max(N)
        if self.size_min < 0 or self.size_min * K > N:
            raise InputError(f"size_min is {self.size_min}; {K} clusters of {N} rows have room for 0 to {N // K}")
        if size_max * K < N or size_max < self.size_min:
            raise InputError(
                f"size_max is {size_max}; {K} clusters of {N} rows need at least {max(-(-N // K), self.size_min)}"
            )
        for name in ("n_init", "max_iter"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not 0 <= self.tol < math.inf:
            raise InputError(f"tol is {self.tol}; expected a finite number of zero or more")

    def _size_max(self, N: int) -> int:
        return -(-N // self.n_clusters) if self.size_max is None else self.size_max

    def _starts(self, points: Points, origin: Floats) -> Iterator[Floats | IntArray]:
        if self.init is None:
            rng = np.random.default_rng(self.random_state)
            yield from (self._spread(points, rng) for _ in range(self.n_init))
            return
        centers = real_array("init", self.init)
        wanted = (self.n_clusters, points.rows.shape[1])
        if centers.shape != wanted or not np.isfinite(centers).all():
            raise InputError(f"init has shape {centers.shape}; expected finite centres, {wanted}")
        yield _unit(centers) if points.cosine else centers - origin

    def _spread(self, points: Points, rng: np.random.Generator) -> IntArray:
        """Draw centres one by one, each a point with a chance in proportion to its cost at the nearest so far."""
        N = len(points.rows)
        chosen = [int(rng.integers(N))]
        nearest = points.costs_at_point(chosen[0])
        for _ in range(1, self.n_clusters):
            total = nearest.sum()
            # where all points are centres already, any of the others is as good
            chance = nearest / total if total > 0 else None
            chosen.append(int(rng.choice(N, p=chance)))
            nearest = np.minimum(nearest, points.costs_at_point(chosen[-1]))
        return np.array(chosen, dtype=np.int64)

    def _follow(self, points: Points, centers: Floats | IntArray) -> _Run:
        N, K = len(points.rows), self.n_clusters
        upper, lower = np.full(K, self._size_max(N)), np.full(K, self.size_min)
        clusters, room = Clusters(points, centers), Room()
        totals: list[int] = []
        prices: IntArray | None = None
        for _ in range(self.max_iter):
            found = settled(Pairs.of_matrix(clusters.costs), lower, upper, prices, room)
            total = found.total()
            if totals and total >= totals[-1]:
                break  # the labels before were as good, and the centres are theirs
            fell = math.inf if not totals else totals[-1] - total
            labels, prices = found.labels(), found.prices()
            totals.append(total)
            clusters.move(labels)
            if fell <= self.tol * totals[0]:
                break
            clusters.update()
        return _Run(labels, clusters, [math.ldexp(total, -clusters.exponent) for total in totals])


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths < 1 / _LARGEST).any():
        peaks = np.abs(rows).max(axis=1, keepdims=True)
        rows = np.where(lengths < 1 / _LARGEST, rows / np.where(peaks > 0, peaks, 1.0), rows)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.where(lengths > 0, lengths, 1.0)  # a zero row is as far from every centre
    return unit
