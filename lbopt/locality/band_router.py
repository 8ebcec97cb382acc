"""The decision for one live request, as a proxy in front of the decode workers takes it: tens of microseconds.

Among the workers whose centroids are nearly as similar to the request as the nearest one (the locality band, `tau`
wide), the one with the fewest requests in flight takes it. tau = 0 is the nearest centroid. With tau = 1 every worker
is in the band, since cosines of counts lie in [0, 1]: join the shortest queue, and of equal ones that of the most
similar worker. A request without mass is as near to all
workers, and goes to the least load.

Source: ELDR (arXiv 2607.00466), section on routing; tau is 0.1 there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.band import NEGATIVE, PRESENT, ROOT, SCALE, SIGNED, WEIGHED, Band, members, route
from lbopt.locality.gate import Floats, Ints
from lbopt.locality.routing_table import RoutingTable
from lbopt.one_thread import OneThread

DEFAULT_TAU = 0.1

_KINDS = {"sqrt-count": ROOT, "binary": PRESENT, "gate-logit": SIGNED}

#: The kernel's sums run in so many lanes.
_LANES = 32


class BandRouter:
    """Routes requests by a table, one at a time; it works in arrays of its own, so a thread needs its own router,
    and a second one is refused.

    Parameters
    ----------
    table
        The fitted table.
    tau
        Width of the band, a difference of cosines from 0 to 1 (to 2 for 'gate-logit', whose cosines may be negative).
    """

    def __init__(self, table: RoutingTable, tau: float = DEFAULT_TAU) -> None:
        widest = 2.0 if table.transform == "gate-logit" else 1.0
        if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 <= tau <= widest:
            raise InputError(
                f"tau is {tau!r}; expected a number from 0 (the nearest centroid) to {widest:g} (the shortest queue)"
            )
        self.table = table
        self.tau = float(tau)
        self._kind = _KINDS.get(table.transform, WEIGHED)
        self._type = np.dtype(np.int64 if table.measurement == "counts" else np.float64)
        self._shape = (table.shape.num_layers, table.shape.num_experts)
        self._band = _band(table)
        self._thread = OneThread("BandRouter")

    def __reduce__(self) -> tuple[type[BandRouter], tuple[RoutingTable, float]]:
        return BandRouter, (self.table, self.tau)  # what the kernel reads is made anew in another process

    def route(self, counts: ArrayLike, in_flight: ArrayLike) -> int:
        """Return the worker for a request.

        Parameters
        ----------
        counts
            int (L, E), prompt tokens that chose each expert; int64 is read as it is, other types are copied. For the
            gate's transforms the sums that they are made of.
        in_flight
            int (K,), decode requests at each worker, those on their way to it included.

        Raises
        ------
        InputError
            If the counts are of another model, negative or not finite, or there is not one load for each worker.
        """
        self._thread.check()
        load = np.ascontiguousarray(in_flight)
        if load.dtype != np.int64:
            load = self._loads(load)
        if load.shape != (self.table.num_workers,):
            raise InputError(
                f"in_flight has shape {load.shape}; the routing table has {self.table.num_workers} workers: expected "
                f"({self.table.num_workers},)"
            )
        chosen = route(self._measured(counts), self._kind, self._band, load, self.tau)
        if chosen < 0:
            raise self._refusal(chosen)
        return int(chosen)

    def band(self, counts: ArrayLike) -> Ints:
        """Return the workers in the band of a request, int64, ascending; there is always one."""
        self._thread.check()
        found = np.empty(self.table.num_workers, dtype=np.int64)
        number = members(self._measured(counts), self._kind, self._band, self.tau, found)
        if number < 0:
            raise self._refusal(number)
        return found[:number]

    def _measured(self, counts: ArrayLike) -> NDArray[Any]:
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

    def _loads(self, load: NDArray[np.generic]) -> Ints:
        if load.dtype.kind not in "iu":
            raise InputError(f"in_flight is of type {load.dtype}; expected whole numbers of requests")
        return load.astype(np.int64)

    def _refusal(self, code: int) -> InputError:
        if code == NEGATIVE:
            return InputError(f"the {self.table.measurement} of the request hold a value below 0; expected 0 or more")
        return InputError(f"the {self.table.measurement} of the request hold NaN or infinite values")


def _band(table: RoutingTable) -> Band:
    """Return the table in the form that the kernel reads."""
    K, d = table.centroids.shape
    room = -(-d // _LANES) * _LANES
    centroids = np.zeros((K, room))
    centroids[:, :d] = table.centroids
    fixed = np.rint(centroids * SCALE)
    L, E = table.shape.num_layers, table.shape.num_experts
    weights: Floats = np.ones((L, E)) if table.idf is None else np.array(table.idf.weights, dtype=np.float64, order="C")
    return Band(
        layers=np.array(table.layers),
        weights=weights,
        centroids=centroids,
        fixed=fixed.astype(np.int16),
        length=np.linalg.norm(fixed / SCALE, axis=1),
        error=np.linalg.norm(centroids - fixed / SCALE, axis=1),
        cells=np.zeros(room),
        rounded=np.zeros(room, dtype=np.int16),
        sums=np.empty(room // 4),
        least=np.empty(K),
        most=np.empty(K),
    )
