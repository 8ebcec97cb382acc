"""The routing table: what the offline fit hands to the router, one centroid for each decode worker.

A live request's raw counts become a signature by the transform, IDF weights and layers of the fit, and its similarity
to a worker is the cosine to that worker's centroid. Two facts follow from the definitions:

- A request without mass in the kept layers has the signature 0 and the similarity 0 to every worker.
- A live request may use an expert that no calibration request used. Under 'count-idf' that expert weighs log(N + 1),
  more than any other, but no centroid has mass there, so it lowers all similarities alike.

A table says what it is: its number is a hash of its content, and `made` says of which calibration requests and when it
was fitted. Its workers may have names, by which a fleet whose workers come and go finds their centroids.

Source: ELDR (arXiv 2607.00466), sections on signatures and on routing; names, number and `made` are ours.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.locality.drift_reference import DriftReference
from lbopt.locality.gate import Floats, Ints, MoEShape
from lbopt.locality.signature import TRANSFORMS, IdfTable, check_layers, transformed
from lbopt.spec import unknown

#: Cells that are transformed at a time, which then stay in the cache until they are multiplied.
_CELLS_AT_A_TIME = 1 << 17

#: By how much the length of a centroid may differ from 1.
_UNIT = 1e-6

#: Letters of a worker's name at most.
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class Made:
    """Where a routing table is from.

    Parameters
    ----------
    calibration
        Hash of the calibration requests' counts, 16 hexadecimal digits; "" where nobody knows.
    fitted
        When, in UTC, ISO 8601; "" where nobody knows.
    """

    calibration: str = ""
    fitted: str = ""


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
    workers
        Names of the K workers, or none at all: then they are called by their numbers.
    made
        Where it is from.
    drift
        What drift is held against; None where the table was fitted by a version that did not keep it.

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
    workers: tuple[str, ...] = ()
    made: Made = Made()
    drift: DriftReference | None = None

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
        object.__setattr__(self, "workers", checked_names(self.workers, len(centroids)))
        drift = self.drift
        if drift is not None and (drift.cosines.shape[1] != len(centroids) or drift.used.shape != (layers.size, E)):
            raise InputError(
                f"the drift reference is of {drift.cosines.shape[1]} workers and experts of shape {drift.used.shape}; "
                f"the table has {len(centroids)} workers, {layers.size} kept layers and {E} experts"
            )

    @property
    def table_id(self) -> str:
        """The number of the table, 16 hexadecimal digits: a hash of all that decides where a request goes."""
        sha = hashlib.blake2b(digest_size=8, person=b"lbopt-table")
        shape = self.shape
        about = (self.model, shape.num_layers, shape.num_experts, shape.experts_per_token, self.transform, self.workers)
        sha.update(repr(about).encode())
        weights = [] if self.idf is None else [np.asarray(self.idf.weights, dtype="<f8")]
        for array in (self.layers.astype("<i8"), self.centroids.astype("<f8", copy=False), *weights):
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the workers; their numbers as text where they have none."""
        return self.workers or tuple(map(str, range(self.num_workers)))

    @property
    def unknown(self) -> str:
        """One sentence that says what nobody knows of the table; "" where all is known."""
        lacking = [
            words
            for words, known in (
                ("the names of its workers", self.workers),
                ("its calibration requests", self.made.calibration),
                ("the date of the fit", self.made.fitted),
                ("what drift is held against", self.drift is not None),
            )
            if not known
        ]
        if not lacking:
            return ""
        listed = lacking[0] if len(lacking) == 1 else f"{', '.join(lacking[:-1])} and {lacking[-1]}"
        return f"routing table {self.table_id} does not tell {listed}"

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


def checked_names(names: object, num_workers: int) -> tuple[str, ...]:
    """Return the names of workers; refuse another number of them than centroids, empty ones, and one given twice."""
    found = tuple(names) if isinstance(names, list | tuple) else ()
    if not all(isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable() for name in found):
        raise InputError(f"workers are called {str(names)[:200]}; expected texts of 1 to {_LONGEST_NAME} letters")
    if found and len(found) != num_workers:
        raise InputError(f"{len(found)} workers are named and the table has {num_workers} centroids; name each of them")
    if (twice := repeated(found)) is not None:
        raise InputError(f"worker '{twice}' is named twice; give each centroid a worker of its own")
    return found
