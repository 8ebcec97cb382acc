"""A few rows that most of the centroids of a routing table nearly are sums of.

By a request's products with these rows a router bounds its cosines to all centroids, and leaves out those that cannot
be in the band (`lbopt/kernels/locality/band`). The rows are the first principal directions of the centroids, rounded to
16 bits; what they leave of each centroid is reckoned from the rounded ones, so the bounds hold for any rows at all, and
good rows merely leave out more.

How many rows pay is estimated for requests whose cosine to one centroid is that of calibration requests, and which are
otherwise at right angles to all centroids: that leaves out fewer than real requests do, whose directions are those of
other requests of their kind.

The decision for one live request, as a proxy in front of the decode workers takes it: tens of microseconds.

Among the open workers whose centroids are nearly as similar to the request as the nearest one (the locality band, `tau`
wide), the one with the fewest requests in flight takes it. tau = 0 is the nearest centroid. With tau = 1 every worker
is in the band, since cosines of counts lie in [0, 1]: join the shortest queue, and of equal ones that of the most
similar worker. A request without mass is as near to all workers, and goes to the least load.

Any number of threads may share a router. A decision works in arrays of its own: cells of the request, bounds of the
cosines. Two threads in the same arrays mix their requests up without any error; of 80,000 requests of four threads, 92
went to another worker or were refused. So every thread gets its own when it first decides, and the centroids, tens of
megabytes, are shared. The loads are the caller's.

Source: ELDR (arXiv 2607.00466), section on routing; tau is 0.1 there.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.band import NEGATIVE, PRESENT, ROOT, SCALE, SIGNED, WEIGHED, Band, choose, measure, members
from lbopt.locality.routing_table import RoutingTable
from lbopt.locality.workload import Bools, Floats, Ints

#: Numbers of rows that are tried; 0 = every product is taken.
_NUMBERS = (0, 2, 4, 8, 12, 16, 24, 32)
#: Of the products that are taken without rows, how many may be left for the rows to pay.
_PAYS = 0.9
#: Width of the band that is reckoned with, and the cosine to the nearest centroid where it is not known.
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
        Of a request to the nearest centroid, as a rule; None where it is not known.
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


DEFAULT_TAU = 0.1

_KINDS = {"sqrt-count": ROOT, "binary": PRESENT, "gate-logit": SIGNED}

#: The kernel's sums run in so many lanes.
_LANES = 32


class Seen(NamedTuple):
    """What a table says of one request, whichever workers are open; the first of the five is for `BandRouter.choose`.

    Parameters
    ----------
    inverse
        1 / length of the signature, 0 for one without mass.
    greatest, nearest
        The greatest cosine, and the worker whose it is.
    within
        Workers within `tau` of it.
    strange
        Share of choices at experts that no calibration request used.
    """

    inverse: float
    greatest: float
    nearest: int
    within: int
    strange: float


class BandRouter:
    """Routes requests by a table, one at a time; threads may share it.

    Parameters
    ----------
    table
        The fitted table.
    tau
        Width of the band, a difference of cosines from 0 to 1 (to 2 for 'gate-logit', whose cosines may be negative).
    """

    def __init__(self, table: RoutingTable, tau: float = DEFAULT_TAU) -> None:
        self.tau = _checked_width(tau, table)
        self.table = table
        self._kind = _KINDS.get(table.transform, WEIGHED)
        self._type = np.dtype(np.int64 if table.measurement == "counts" else np.float64)
        self._shape = (table.shape.num_layers, table.shape.num_experts)
        self._shared = _shared(table)
        self._of_thread = threading.local()
        self._all = np.ones(table.num_workers, dtype=np.bool_)

    def __reduce__(self) -> tuple[type[BandRouter], tuple[RoutingTable, float]]:
        return BandRouter, (self.table, self.tau)  # what the kernel reads is made anew in another process

    def route(self, counts: ArrayLike, in_flight: ArrayLike, is_open: ArrayLike | None = None) -> int:
        """Return the worker for a request.

        Parameters
        ----------
        counts
            int (L, E), prompt tokens that chose each expert; int64 is read as it is, other types are copied. For the
            gate's transforms the sums that they are made of.
        in_flight
            int (K,), decode requests at each worker, those on their way to it included.
        is_open
            bool (K,), which workers take requests; None = all.

        Raises
        ------
        InputError
            If the counts are of another model, negative or not finite, there is not one load for each worker, or no
            worker is open.
        """
        load = np.ascontiguousarray(in_flight)
        if load.dtype != np.int64:
            load = _whole(load)
        if load.shape != self._all.shape:
            raise InputError(
                f"in_flight has shape {load.shape}; the routing table has {self._all.size} workers: expected "
                f"({self._all.size},)"
            )
        mask = self._mask(is_open)
        chosen = self.choose(self.see(counts), load, mask)
        if chosen < 0:
            raise InputError("no worker is open; expected at least one that takes requests")
        return chosen

    def band(self, counts: ArrayLike, is_open: ArrayLike | None = None) -> Ints:
        """Return the open workers in the band of a request, int64, ascending; empty only where none is open."""
        found = np.empty(self._all.size, dtype=np.int64)
        mask = self._mask(is_open)
        inverse = self.see(counts).inverse
        return found[: members(self._band(), inverse, self.tau, mask, found)]

    def see(self, counts: ArrayLike) -> Seen:
        """Bound the cosines of a request to all workers; `choose` of the same thread goes on from there.

        Raises
        ------
        InputError
            If the counts are of another model, negative or not finite.
        """
        seen = Seen(*measure(self._measured(counts), self._kind, self._band(), self.tau))
        if seen.inverse == NEGATIVE:
            raise InputError(f"the {self.table.measurement} of the request hold a value below 0; expected 0 or more")
        if seen.inverse < 0:
            raise InputError(f"the {self.table.measurement} of the request hold NaN or infinite values")
        return seen

    def choose(self, seen: Seen, load: Ints, is_open: Bools) -> int:
        """Return the worker of the request that this thread has just seen, -1 where none is open.

        Parameters
        ----------
        seen
            As `see` returned it.
        load, is_open
            int64 and bool, (K,), not checked.
        """
        return int(choose(self._band(), seen.inverse, self.tau, load, is_open))

    def _band(self) -> Band:
        """Return the arrays in which the calling thread decides."""
        try:
            band: Band = self._of_thread.band
        except AttributeError:
            room, K = self._shared["centroids"].shape[1], self._all.size
            band = Band(
                **self._shared,
                cells=np.zeros(room),
                rounded=np.zeros(room, dtype=np.int16),
                sums=np.empty(room // 4),
                least=np.empty(K),
                most=np.empty(K),
                seen=np.empty(self._shared["basis"].shape[0]),
                taken=np.empty(K, dtype=np.bool_),
            )
            self._of_thread.band = band
        return band

    def _measured(self, counts: ArrayLike) -> NDArray[Any]:
        """Return what the prompt of one request did as the kernel reads it; refuse another shape or type."""
        measured = np.ascontiguousarray(counts)
        if measured.shape != self._shape:
            L, E = self._shape
            raise InputError(
                f"the {self.table.measurement} of the request are of shape {measured.shape}; the routing table is of "
                f"{L} layers and {E} experts, ({L}, {E})"
            )
        if measured.dtype != self._type:
            if measured.dtype.kind not in ("iu" if self._type.kind == "i" else "iuf"):
                wanted = "whole numbers of tokens" if self._type.kind == "i" else "numbers"
                raise InputError(f"the {self.table.measurement} are of type {measured.dtype}; expected {wanted}")
            return measured.astype(self._type)
        return measured

    def _mask(self, is_open: ArrayLike | None) -> Bools:
        if is_open is None:
            return self._all
        mask = np.ascontiguousarray(is_open)
        if mask.dtype != np.bool_ or mask.shape != self._all.shape:
            raise InputError(
                f"is_open is of shape {mask.shape} and type {mask.dtype}; expected a truth value for each of "
                f"{self._all.size} workers"
            )
        return mask


def _checked_width(tau: float, table: RoutingTable) -> float:
    """Return the width of a band as a float; refuse one that `table` gives no meaning to."""
    widest = 2.0 if table.transform == "gate-logit" else 1.0
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 <= tau <= widest:
        raise InputError(
            f"tau is {tau!r}; expected a number from 0 (the nearest centroid) to {widest:g} (the shortest queue)"
        )
    return float(tau)


def _whole(load: NDArray[np.generic]) -> Ints:
    if load.dtype.kind not in "iu":
        raise InputError(f"in_flight is of type {load.dtype}; expected whole numbers of requests")
    return load.astype(np.int64)


def _shared(table: RoutingTable) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table that no decision changes, by the names of `Band`."""
    K, d = table.centroids.shape
    room = -(-d // _LANES) * _LANES
    centroids = np.zeros((K, room))
    centroids[:, :d] = table.centroids
    fixed = np.rint(centroids * SCALE)
    L, E = table.shape.num_layers, table.shape.num_experts
    weights: Floats = np.ones((L, E)) if table.idf is None else np.array(table.idf.weights, dtype=np.float64, order="C")
    strange = np.zeros(0, dtype=np.int64)
    if table.drift is not None and table.measurement == "counts":
        place, expert = np.nonzero(~table.drift.used)
        strange = np.array(table.layers)[place] * E + expert
    cosine = None if table.drift is None else float(np.median(table.drift.cosines.max(axis=1)))
    return {
        "layers": np.array(table.layers),
        "weights": weights,
        "centroids": centroids,
        "fixed": fixed.astype(np.int16),
        "length": np.linalg.norm(fixed / SCALE, axis=1),
        "error": np.linalg.norm(centroids - fixed / SCALE, axis=1),
        "strange": strange.astype(np.int64),
        **basis_of(centroids, cosine)._asdict(),
    }
