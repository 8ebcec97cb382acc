"""The offline fit: from calibration requests to the routing table of K workers.

Signatures are made (IDF weights, transform), layers are chosen (`layer_mask`), and the signatures are clustered on
cosine distance, no cluster larger than ceil(N / K): one centroid for each worker. Weights and layers do not depend on
K, so another number of workers needs the clustering alone (`RoutingFit.for_workers`).

Source: ELDR (arXiv 2607.00466), sections on signatures and on balanced clustering; starts and seeds are ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment import BalancedKMeans
from lbopt.exceptions import InputError
from lbopt.locality.capture import Capture
from lbopt.locality.drift_reference import drift_reference
from lbopt.locality.gate import Floats, Ints, MoEShape, check_whole
from lbopt.locality.layer_mask import LayerMask, fit_layer_mask
from lbopt.locality.quality import MOST_PAIRS, sample_pairs, signature_quality
from lbopt.locality.routing_table import Made, RoutingTable
from lbopt.locality.signature import TRANSFORMS, IdfTable, fit_idf, signatures, transformed
from lbopt.locality.workload import ExpertActivity
from lbopt.runner.provenance import utc_now
from lbopt.spec import unknown

#: Fewer requests have no two pairs to rank.
_LEAST_REQUESTS = 3


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
    balanced, strict, starts, seed
        As they were asked for.
    """

    table: RoutingTable
    mask: LayerMask | None
    quality: float
    quality_of_all: float
    rows: Floats
    labels: Ints
    measured: NDArray[np.generic]
    objective: float
    balanced: bool
    strict: bool
    starts: int
    seed: int

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
        kind = self.balanced if balanced is None else balanced
        model = _clustered(self.rows, num_workers, kind, self.strict, self.starts, self.seed)
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
            balanced=kind,
        )


def fit_routing(
    activity: ExpertActivity | Capture,
    num_workers: int,
    *,
    transform: str = "count-idf",
    model: str = "",
    workers: Sequence[str] = (),
    balanced: bool = True,
    strict: bool = False,
    mask: bool = True,
    num_pairs: int = MOST_PAIRS,
    starts: int = 5,
    seed: int = 0,
) -> RoutingFit:
    """Fit a routing table.

    Parameters
    ----------
    activity
        Calibration requests, N of them.
    num_workers
        Decode workers, K, from 1 to N.
    transform
        One of `TRANSFORMS`.
    model
        Name of the model; that of the capture by default.
    workers
        Names of the workers, in the order of the centroids; none = they are called by their numbers.
    balanced
        Whether no cluster may exceed ceil(N / K); else it is plain spherical K-means.
    strict
        Whether every cluster of a balanced fit must also have floor(N / K) requests.
    mask
        Whether layers are chosen; else all are kept.
    num_pairs
        Pairs of requests that rho is taken over, at most.
    starts, seed
        Starts of the clustering, and the seed of starts and pairs.

    Raises
    ------
    InputError
        If there are too few requests, the transform needs what was not captured, or signatures say nothing.
    """
    if transform not in TRANSFORMS:
        raise unknown("transform", transform, TRANSFORMS)
    measured = getattr(activity, TRANSFORMS[transform])
    if measured is None:
        raise InputError(f"transform '{transform}' needs {TRANSFORMS[transform]}, which the capture does not hold")
    requests = len(measured)
    if requests < _LEAST_REQUESTS:
        raise InputError(f"there are {requests} calibration requests; expected {_LEAST_REQUESTS} or more")
    _check_workers(num_workers, requests)
    check_whole("seed", seed, 0)
    idf = fit_idf(measured) if transform == "count-idf" else None
    pairs = sample_pairs(requests, seed, num_pairs)
    chosen = None
    if mask:  # the weights are left to it: tens of megabytes need not be multiplied for layers that are left out
        cells = measured if idf is not None else transformed(transform, measured)
        chosen = fit_layer_mask(cells, activity.decode, pairs, None if idf is None else idf.weights)
    layers = np.arange(measured.shape[1]) if chosen is None else chosen.kept
    kept_idf = None if idf is None else IdfTable(idf.weights[layers], idf.num_requests)
    rows = signatures(transformed(transform, measured[:, layers], kept_idf))
    quality = signature_quality(rows, activity.decode, pairs) if chosen is None else chosen.quality
    clusters = _clustered(rows, num_workers, balanced, strict, starts, seed)
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
        balanced=balanced,
        strict=strict,
        starts=starts,
        seed=seed,
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


def _clustered(rows: Floats, K: int, balanced: bool, strict: bool, starts: int, seed: int) -> BalancedKMeans:
    N = len(rows)
    _check_workers(K, N)
    bounds = {"size_max": -(-N // K), "size_min": N // K if strict else 0} if balanced else {"size_max": N}
    return BalancedKMeans(K, metric="cosine", n_init=starts, random_state=seed, **bounds).fit(rows)


def _check_workers(num_workers: int, requests: int) -> None:
    check_whole("number of workers", num_workers, 1)
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
