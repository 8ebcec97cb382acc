"""The routing table: what the offline fit hands to the router, one centroid for each decode worker.

A live request's raw counts become a signature by the transform, IDF weights and layers of the fit, and its similarity
to a worker is the cosine to that worker's centroid. Two facts follow from the definitions:

- A request without mass in the kept layers has the signature 0 and the similarity 0 to every worker.
- A live request may use an expert that no calibration request used. Under 'count-idf' that expert weighs log(N + 1),
  more than any other, but no centroid has mass there, so it lowers all similarities alike.

Source: ELDR (arXiv 2607.00466), sections on signatures and on routing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.locality.gate import Floats, Ints, MoEShape
from lbopt.locality.signature import TRANSFORMS, IdfTable, check_layers, transformed
from lbopt.spec import unknown

#: Cells that are transformed at a time, which then stay in the cache until they are multiplied.
_CELLS_AT_A_TIME = 1 << 17

#: By how much the length of a centroid may differ from 1.
_UNIT = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTable:
    """All that is needed to tell how near a request is to each worker; arrays are read-only.

    Parameters
    ----------
    model
        Name of the model whose experts were counted; may be empty.
    shape
        Its layers, experts and choices a token.
    transform
        One of `TRANSFORMS`.
    idf
        Weights of the cells for 'count-idf', None for the others.
    layers
        int64 (N*,), the kept layers, in the order in which they lie in a centroid.
    centroids
        float64 (K, N* * E), rows of length 1, or 0 for a cluster of requests without mass.

    Raises
    ------
    InputError
        If the parts do not fit together.
    """

    model: str
    shape: MoEShape
    transform: str
    idf: IdfTable | None
    layers: Ints
    centroids: Floats

    def __post_init__(self) -> None:
        L, E = self.shape.num_layers, self.shape.num_experts
        if self.transform not in TRANSFORMS:
            raise unknown("transform", self.transform, TRANSFORMS)
        if (self.idf is None) == (self.transform == "count-idf"):
            has = "no IDF weights" if self.idf is None else "IDF weights"
            raise InputError(f"a routing table of transform '{self.transform}' has {has}; 'count-idf' alone needs them")
        if self.idf is not None:
            weights = np.asarray(self.idf.weights)
            if weights.shape != (L, E):
                raise InputError(f"the IDF table is of shape {weights.shape}; the model has {L} layers, {E} experts")
            if not (np.isfinite(weights).all() and (weights >= 0).all()):
                raise InputError("the IDF table holds a weight that is negative or not finite; fit it again")
        layers = np.array(check_layers(self.layers, L), dtype=np.int64)
        centroids = np.array(self.centroids, dtype=np.float64, order="C")
        if centroids.ndim != 2 or centroids.shape[0] == 0 or centroids.shape[1] != layers.size * E:
            raise InputError(
                f"centroids are of shape {centroids.shape}; expected one row for each worker, of {layers.size} kept "
                f"layers times {E} experts = {layers.size * E} cells"
            )
        length = np.sqrt(np.einsum("ij,ij->i", centroids, centroids))
        wrong = np.flatnonzero(~((length == 0) | (np.abs(length - 1) <= _UNIT)))  # NaN is neither
        if wrong.size:
            raise InputError(f"centroid {wrong[0]} has the length {length[wrong[0]]:g}; expected 1, or 0 for no mass")
        for name, array in (("layers", layers), ("centroids", centroids)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def num_workers(self) -> int:
        """Number of decode workers, K."""
        return len(self.centroids)

    @property
    def measurement(self) -> str:
        """Which measurement of a request is needed: 'counts', 'gate_prob' or 'gate_logit'."""
        return TRANSFORMS[self.transform]

    def similarities(self, measured: ArrayLike) -> Floats:
        """Return the cosine of each request to each worker's centroid, float64 (n, K).

        Parameters
        ----------
        measured
            (n, L, E), raw counts of live requests; for the gate's transforms, what they are made of.

        Raises
        ------
        InputError
            If there are other layers or experts than those of the model, or values that the transform refuses.
        """
        cube = np.asarray(measured)
        L, E = self.shape.num_layers, self.shape.num_experts
        if cube.ndim != 3 or cube.shape[1:] != (L, E):
            raise InputError(
                f"the {self.measurement} are of shape {cube.shape}; the routing table is of requests of {L} layers and "
                f"{E} experts, (n, {L}, {E})"
            )
        kept = slice(None) if np.array_equal(self.layers, np.arange(L)) else self.layers
        idf = None if self.idf is None else IdfTable(self.idf.weights[kept], self.idf.num_requests)
        found = np.empty((len(cube), self.num_workers))
        step = max(1, _CELLS_AT_A_TIME // (self.layers.size * E))
        for start in range(0, len(cube), step):
            rows = transformed(self.transform, cube[start : start + step, kept], idf).reshape(-1, self.layers.size * E)
            length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
            some = rows @ self.centroids.T
            np.divide(some, length, out=found[start : start + step], where=length > 0)
            found[start : start + step][length[:, 0] == 0] = 0.0
        return found
