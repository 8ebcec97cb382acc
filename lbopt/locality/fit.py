"""The layer mask: which layers make signatures that foretell decode best.

Greedy forward selection: start with no layer, add in each step the layer with which rho is greatest, go on through all
of them, and keep the first N* where the curve of rho peaks; it is not monotone, so the first fall is no reason to stop.
Ties: the lowest layer in a step, the fewest layers at the peak.

Products of all pairs are computed once a layer, so that a trial costs a few operations a pair instead of a
signature; see `lbopt.kernels.locality.forward_selection` for how most trials need no ranking.

Source: ELDR (arXiv 2607.00466), section on the layer mask; the tie rules are ours.

The offline fit: from calibration requests to the routing table of K workers.

Signatures are made (IDF weights, transform), layers are chosen (`layer_mask`), and the signatures are clustered on
cosine distance, no cluster larger than ceil(N / K): one centroid for each worker. Weights and layers do not depend on
K, so another number of workers needs the clustering alone (`RoutingFit.for_workers`).

Source: ELDR (arXiv 2607.00466), sections on signatures and on balanced clustering; starts and seeds are ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.assignment import BalancedKMeans
from lbopt.exceptions import InputError
from lbopt.kernels.locality.forward_selection import forward_selection, pair_products
from lbopt.kinds import whole
from lbopt.locality.capture import Capture
from lbopt.locality.routing_table import Made, RoutingTable, drift_reference
from lbopt.locality.signature import (
    DECIMALS,
    MOST_PAIRS,
    TRANSFORMS,
    IdfTable,
    check_pairs,
    fit_idf,
    sample_pairs,
    signature_quality,
    signatures,
    transformed,
)
from lbopt.locality.workload import ExpertActivity, Floats, Ints, MoEShape
from lbopt.runner.row import utc_now
from lbopt.spec import unknown

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


#: Fewer requests have no two pairs to rank.
_LEAST_REQUESTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FitConfig:
    """How a routing table is fitted.

    Parameters
    ----------
    transform
        One of `TRANSFORMS`.
    balanced
        Whether no cluster may exceed ceil(N / K); else it is plain spherical K-means.
    strict
        Whether every cluster of a balanced fit must also have floor(N / K) requests.
    mask
        Whether layers are chosen; else all are kept.
    num_pairs
        Pairs of requests that rho is taken over, at most.
    starts
        Starts of the clustering.
    seed
        Seed of starts and pairs.
    """

    transform: str = "count-idf"
    balanced: bool = True
    strict: bool = False
    mask: bool = True
    num_pairs: int = MOST_PAIRS
    starts: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.transform not in TRANSFORMS:
            raise unknown("transform", self.transform, TRANSFORMS)
        whole("seed", self.seed, 0)


@dataclass(frozen=True, slots=True, eq=False)
class RoutingFit:
    """A routing table, and what was found on the way.

    Parameters
    ----------
    table
        What the router needs.
    mask
        Order and curve of the layers; None where all were kept unseen.
    quality, quality_of_all
        Rho of the signatures with the kept layers, and with all of them.
    rows
        float64 (N, N* * E), the signatures.
    labels
        int64 (N,), the cluster of each request.
    measured
        (N, N*, E), what the signatures are made of, kept layers alone.
    objective
        Sum over requests of 1 - cosine to the centroid of their cluster.
    config
        How it was fitted.
    """

    table: RoutingTable
    mask: LayerMask | None
    quality: float
    quality_of_all: float
    rows: Floats
    labels: Ints
    measured: NDArray[np.generic]
    objective: float
    config: FitConfig

    @property
    def balanced(self) -> bool:
        """Whether clusters were bounded."""
        return self.config.balanced

    @property
    def sizes(self) -> Ints:
        """Requests of each cluster, int64 (K,)."""
        return np.bincount(self.labels, minlength=self.table.num_workers)

    def for_workers(self, num_workers: int, *, balanced: bool | None = None, workers: Sequence[str] = ()) -> RoutingFit:
        """Return the fit for another number of workers, or another kind of clusters, with the same signatures.

        Parameters
        ----------
        num_workers
            Decode workers.
        balanced
            As of `fit_routing`; None = as it was.
        workers
            Their names.
        """
        config = self.config if balanced is None else replace(self.config, balanced=balanced)
        model = _clustered(self.rows, num_workers, config)
        return replace(
            self,
            table=replace(
                self.table,
                centroids=model.cluster_centers_,
                workers=tuple(workers),
                drift=drift_reference(self.rows, model.labels_, model.cluster_centers_, self.measured),
            ),
            labels=model.labels_,
            objective=model.inertia_,
            config=config,
        )


def fit_routing(
    activity: ExpertActivity | Capture,
    num_workers: int,
    *,
    model: str = "",
    workers: Sequence[str] = (),
    **config: Any,
) -> RoutingFit:
    """Fit a routing table.

    Parameters
    ----------
    activity
        Calibration requests, N of them.
    num_workers
        Decode workers, K, from 1 to N.
    model
        Name of the model; that of the capture by default.
    workers
        Names of the workers, in the order of the centroids; none = they are called by their numbers.
    config
        Fields of `FitConfig`, such as ``transform="count"`` or ``starts=1``.

    Raises
    ------
    InputError
        If there are too few requests, the transform needs what was not captured, or signatures say nothing.
    """
    how = FitConfig(**config)
    transform = how.transform
    measured = getattr(activity, TRANSFORMS[transform])
    if measured is None:
        raise InputError(f"transform '{transform}' needs {TRANSFORMS[transform]}, which the capture does not hold")
    requests = len(measured)
    if requests < _LEAST_REQUESTS:
        raise InputError(f"there are {requests} calibration requests; expected {_LEAST_REQUESTS} or more")
    _check_workers(num_workers, requests)
    idf = fit_idf(measured) if transform == "count-idf" else None
    pairs = sample_pairs(requests, how.seed, how.num_pairs)
    chosen = None
    if how.mask:  # the weights are left to it: tens of megabytes need not be multiplied for layers that are left out
        cells = measured if idf is not None else transformed(transform, measured)
        chosen = fit_layer_mask(cells, activity.decode, pairs, None if idf is None else idf.weights)
    layers = np.arange(measured.shape[1]) if chosen is None else chosen.kept
    kept_idf = None if idf is None else IdfTable(idf.weights[layers], idf.num_requests)
    rows = signatures(transformed(transform, measured[:, layers], kept_idf))
    quality = signature_quality(rows, activity.decode, pairs) if chosen is None else chosen.quality
    clusters = _clustered(rows, num_workers, how)
    kept = measured[:, layers]
    return RoutingFit(
        table=RoutingTable(
            model or getattr(activity, "model", ""),
            _shape(activity),
            transform,
            idf,
            layers,
            clusters.cluster_centers_,
            workers=tuple(workers),
            made=Made(_digest(measured), utc_now()),
            drift=drift_reference(rows, clusters.labels_, clusters.cluster_centers_, kept),
        ),
        mask=chosen,
        quality=quality,
        quality_of_all=quality if chosen is None else float(chosen.curve[-1]),
        rows=rows,
        labels=clusters.labels_,
        measured=kept,
        objective=clusters.inertia_,
        config=how,
    )


def _digest(measured: NDArray[np.generic]) -> str:
    """Return a hash of calibration requests, the same whatever type of numbers holds them."""
    kind = "<f8"
    if measured.dtype.kind in "iu":
        kind = "<u2" if measured.min() >= 0 and measured.max() < 2**16 else "<i8"  # fewer bytes take less time
    sha = hashlib.blake2b(f"{measured.shape} {kind}".encode(), digest_size=8, person=b"lbopt-calibrate")
    for row in measured:
        sha.update(np.ascontiguousarray(row, dtype=kind).tobytes())
    return sha.hexdigest()


def _clustered(rows: Floats, K: int, how: FitConfig) -> BalancedKMeans:
    N = len(rows)
    _check_workers(K, N)
    bounds = {"size_max": -(-N // K), "size_min": N // K if how.strict else 0} if how.balanced else {"size_max": N}
    return BalancedKMeans(K, metric="cosine", n_init=how.starts, random_state=how.seed, **bounds).fit(rows)


def _check_workers(num_workers: int, requests: int) -> None:
    whole("number of workers", num_workers, 1)
    if num_workers > requests:
        raise InputError(
            f"there are {requests} calibration requests for {num_workers} workers; capture at least one for each"
        )


def _shape(activity: ExpertActivity | Capture) -> MoEShape:
    """Return the model's shape; a layer's decode activation sums to the experts of a token."""
    if isinstance(activity, Capture):
        return activity.shape
    _, L, E = activity.counts.shape
    return MoEShape(L, E, max(1, round(float(activity.decode[0, 0].sum()))))
