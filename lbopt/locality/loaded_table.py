"""A routing table as the compiled decision reads it: one copy for all threads, and scratch for each of them.

A decision works in arrays of its own: cells of the request, bounds of the cosines. Two threads in the same arrays mix
their requests up without any error; of 80,000 requests of four threads, 92 went to another worker or were refused. So
every thread gets its own when it first decides, and the centroids, tens of megabytes, are shared.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.band import NEGATIVE, PRESENT, ROOT, SCALE, SIGNED, WEIGHED, Band
from lbopt.locality.basis import basis_of
from lbopt.locality.gate import Floats
from lbopt.locality.routing_table import RoutingTable

_KINDS = {"sqrt-count": ROOT, "binary": PRESENT, "gate-logit": SIGNED}

#: The kernel's sums run in so many lanes.
_LANES = 32


def check_width(tau: float, table: RoutingTable) -> float:
    """Return the width of a band as a float; refuse one that `table` gives no meaning to."""
    widest = 2.0 if table.transform == "gate-logit" else 1.0
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 <= tau <= widest:
        raise InputError(
            f"tau is {tau!r}; expected a number from 0 (the nearest centroid) to {widest:g} (the shortest queue)"
        )
    return float(tau)


class LoadedTable:
    """A routing table that is ready for decisions; it may be shared by threads.

    Parameters
    ----------
    table
        The fitted table.
    """

    def __init__(self, table: RoutingTable) -> None:
        self.table = table
        self.kind = _KINDS.get(table.transform, WEIGHED)
        self._type = np.dtype(np.int64 if table.measurement == "counts" else np.float64)
        self._shape = (table.shape.num_layers, table.shape.num_experts)
        self._shared = _shared(table)
        self._of_thread = threading.local()

    def band(self) -> Band:
        """Return the arrays in which the calling thread decides."""
        try:
            band: Band = self._of_thread.band
        except AttributeError:
            room, K = self._shared["centroids"].shape[1], self.table.num_workers
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

    def measured(self, counts: ArrayLike) -> NDArray[Any]:
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

    def refusal(self, code: float) -> InputError:
        """Return the error that a code of the kernel stands for."""
        if code == NEGATIVE:
            return InputError(f"the {self.table.measurement} of the request hold a value below 0; expected 0 or more")
        return InputError(f"the {self.table.measurement} of the request hold NaN or infinite values")


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
