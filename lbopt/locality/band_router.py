"""The decision for one live request, as a proxy in front of the decode workers takes it: tens of microseconds.

Among the open workers whose centroids are nearly as similar to the request as the nearest one (the locality band, `tau`
wide), the one with the fewest requests in flight takes it. tau = 0 is the nearest centroid. With tau = 1 every worker
is in the band, since cosines of counts lie in [0, 1]: join the shortest queue, and of equal ones that of the most
similar worker. A request without mass is as near to all workers, and goes to the least load.

Any number of threads may share a router: each decides in arrays of its own (`loaded_table`). The loads are the
caller's; `live_router` keeps them itself.

Source: ELDR (arXiv 2607.00466), section on routing; tau is 0.1 there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.band import choose, measure, members
from lbopt.locality.gate import Bools, Ints
from lbopt.locality.loaded_table import LoadedTable, check_width
from lbopt.locality.routing_table import RoutingTable

DEFAULT_TAU = 0.1


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
        self.tau = check_width(tau, table)
        self.table = table
        self._loaded = LoadedTable(table)
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
            load = self._loads(load)
        if load.shape != (self.table.num_workers,):
            raise InputError(
                f"in_flight has shape {load.shape}; the routing table has {self.table.num_workers} workers: expected "
                f"({self.table.num_workers},)"
            )
        mask = self._mask(is_open)
        loaded = self._loaded
        band = loaded.band()
        inverse = measure(loaded.measured(counts), loaded.kind, band, self.tau)[0]
        if inverse < 0:
            raise loaded.refusal(inverse)
        chosen = choose(band, inverse, self.tau, load, mask)
        if chosen < 0:
            raise InputError("no worker is open; expected at least one that takes requests")
        return int(chosen)

    def band(self, counts: ArrayLike, is_open: ArrayLike | None = None) -> Ints:
        """Return the open workers in the band of a request, int64, ascending; empty only where none is open."""
        found = np.empty(self.table.num_workers, dtype=np.int64)
        mask = self._mask(is_open)
        loaded = self._loaded
        band = loaded.band()
        inverse = measure(loaded.measured(counts), loaded.kind, band, self.tau)[0]
        if inverse < 0:
            raise loaded.refusal(inverse)
        return found[: members(band, inverse, self.tau, mask, found)]

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

    def _loads(self, load: NDArray[np.generic]) -> Ints:
        if load.dtype.kind not in "iu":
            raise InputError(f"in_flight is of type {load.dtype}; expected whole numbers of requests")
        return load.astype(np.int64)
