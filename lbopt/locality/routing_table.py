"""What calibration requests look like to their own routing table: what live requests are held against to see drift.

Centroids are fitted to the calibration requests, which are therefore more similar to them than new requests of the
same kind are. Each is measured as if it had been left out of the fit: it is taken out of its cluster's sum before the
cosine, and an expert that it alone used counts as one that no calibration request used. Kept layers, IDF weights and
the clusters themselves still know it.

The routing table: what the offline fit hands to the router, one centroid for each decode worker.

A live request's raw counts become a signature by the transform, IDF weights and layers of the fit, and its similarity
to a worker is the cosine to that worker's centroid. Two facts follow from the definitions:

- A request without mass in the kept layers has the signature 0 and the similarity 0 to every worker.
- A live request may use an expert that no calibration request used. Under 'count-idf' that expert weighs log(N + 1),
  more than any other, but no centroid has mass there, so it lowers all similarities alike.

A table says what it is: its number is a hash of its content, and `made` says of which calibration requests and when it
was fitted. Its workers may have names, by which a fleet whose workers come and go finds their centroids.

Source: ELDR (arXiv 2607.00466), sections on signatures and on routing; names, number and `made` are ours.

The routing table as a file: one .npz that the router loads when it starts.

Entries: `layers`, `centroids`, `idf` where the transform has weights, and the JSON text `about` with format, version,
model, shape, transform and the numbers of workers, kept layers and calibration requests. Version 2 adds the names of
the workers, the table's number, the hash of the calibration requests and the date of the fit, and with `drift_cosines`,
`drift_strange` and `drift_used` what drift is held against. A file of version 1 is read, and one sentence in the log
says what it does not tell. What is read is checked as a
new table is, so a file that was tampered with or cut is refused when it is loaded, not when a request comes.

Source: ELDR (arXiv 2607.00466), whose router loads one such file: layer mask, IDF table, K unit centroids.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.files import repeated, shown
from lbopt.locality.archive import Format, member, read_archive, write_archive
from lbopt.locality.signature import TRANSFORMS, IdfTable, check_layers, transformed
from lbopt.locality.workload import Bools, Floats, Ints, MoEShape
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True, eq=False)
class DriftReference:
    """Calibration requests as a table sees them, each left out of the fit; arrays are read-only.

    Parameters
    ----------
    cosines
        float32 (N, K), to each worker's centroid.
    strange
        float32 (N,), share of choices in kept layers at experts that no other calibration request used.
    used
        bool (N*, E), whether some calibration request used the expert, in the order of the table's layers.

    Raises
    ------
    InputError
        If shapes do not fit together, or a number is outside of its range.
    """

    cosines: NDArray[np.float32]
    strange: NDArray[np.float32]
    used: Bools

    def __post_init__(self) -> None:
        cosines, strange = np.array(self.cosines, np.float32), np.array(self.strange, np.float32)
        used = np.array(self.used, dtype=np.bool_)
        if cosines.ndim != 2 or not cosines.size or strange.shape != cosines.shape[:1] or used.ndim != 2:
            raise InputError(
                f"a drift reference has cosines of shape {cosines.shape}, shares of shape {strange.shape} and experts "
                f"of shape {used.shape}; expected (N, K), (N,) and (layers, E)"
            )
        if not (np.abs(cosines) <= 1 + 1e-5).all() or not ((strange >= 0) & (strange <= 1)).all():
            raise InputError(
                "a drift reference holds a cosine outside -1 to 1, or a share outside 0 to 1; fit it again"
            )
        for name, array in (("cosines", cosines), ("strange", strange), ("used", used)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)


def drift_reference(rows: Floats, labels: Ints, centroids: Floats, measured: NDArray[np.generic]) -> DriftReference:
    """Measure calibration requests as if each had been left out.

    Parameters
    ----------
    rows
        float64 (N, N* * E), their signatures.
    labels
        int64 (N,), the cluster of each.
    centroids
        float64 (K, N* * E), of length one.
    measured
        (N, N*, E), counts or sums of the gate, kept layers alone.
    """
    N, K = len(rows), len(centroids)
    cosines = rows @ centroids.T
    own = np.zeros((K, N))
    own[labels, np.arange(N)] = 1.0
    sums = own @ rows
    square = np.einsum("ij,ij->i", sums, sums)
    with_sum = np.einsum("ij,ij->i", rows, sums[labels])
    mass = np.einsum("ij,ij->i", rows, rows)
    rest = square[labels] - 2 * with_sum + mass  # |S - s|^2
    alone = rest <= 1e-12 * np.maximum(square[labels], 1.0)
    left_out = np.where(alone, 0.0, (with_sum - mass) / np.sqrt(np.where(alone, 1.0, rest)))
    cosines[np.arange(N), labels] = np.clip(left_out, -1.0, 1.0)
    used_by = (np.asarray(measured) != 0).sum(axis=0)
    if measured.dtype.kind not in "iu":  # gates give every expert some mass: none is ever strange
        return DriftReference(cosines.astype(np.float32), np.zeros(N, np.float32), np.ones(used_by.shape, np.bool_))
    total = np.asarray(measured).reshape(N, -1).sum(axis=1)
    once = np.asarray(measured)[:, used_by == 1].sum(axis=1)
    share = np.divide(once, total, out=np.zeros(N), where=total > 0)
    return DriftReference(cosines.astype(np.float32), share.astype(np.float32), used_by > 0)


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
        Hash of the calibration requests' counts, 16 hexadecimal digits; "" where it is not known.
    fitted
        When, in UTC, ISO 8601; "" where it is not known.
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
        """One sentence that says what is not known of the table; "" where all is known."""
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


FORMAT = Format("lbopt-routing-table", 2, "routing table", "lbopt fit")

#: Files of this version and newer ones tell the table's number.
_WITH_ID = 2

_log = logging.getLogger(__name__)


def write_table(table: RoutingTable, path: str | os.PathLike[str]) -> None:
    """Write a routing table to `path`, whole or not at all; what was there is replaced."""
    arrays: dict[str, NDArray[Any]] = {"layers": table.layers, "centroids": table.centroids}
    if table.idf is not None:
        arrays["idf"] = table.idf.weights
    if table.drift is not None:
        arrays["drift_cosines"], arrays["drift_strange"] = table.drift.cosines, table.drift.strange
        arrays["drift_used"] = table.drift.used.astype(np.uint8)
    shape = table.shape
    about = {
        "model": table.model,
        "shape": [shape.num_layers, shape.num_experts, shape.experts_per_token],
        "transform": table.transform,
        "num_workers": table.num_workers,
        "kept_layers": int(table.layers.size),
        "calibration_requests": None if table.idf is None else int(table.idf.num_requests),
        "workers": list(table.workers),
        "table_id": table.table_id,
        "calibration": table.made.calibration,
        "fitted": table.made.fitted,
    }
    write_archive(Path(path), FORMAT, about, arrays)


def read_table(path: str | os.PathLike[str]) -> RoutingTable:
    """Read a routing table.

    Raises
    ------
    InputError
        If there is no such file, it is no routing table, of a newer version or damaged, or its parts do not fit.
    """
    about, arrays = read_archive(Path(path), FORMAT)
    where = f"routing table '{path}'"
    layers = member(arrays, "layers", "iu", 1, where)
    centroids = member(arrays, "centroids", "f", 2, where)
    weights = member(arrays, "idf", "f", 2, where) if "idf" in arrays else None
    drift = _drift(arrays, where)
    try:
        shape = MoEShape(*about["shape"])
        requests = about["calibration_requests"]
        if weights is not None and (not isinstance(requests, int) or isinstance(requests, bool) or requests < 1):
            raise InputError(
                f"it was fitted to {shown(requests)} calibration requests; expected 1 or more, fit it again"
            )
        idf = None if weights is None else IdfTable(np.asarray(weights, np.float64), requests)
        workers = about.get("workers") or []
        if not isinstance(workers, list):
            raise InputError(f"its workers are {shown(workers)}; expected a list of names, fit it again")
        table = RoutingTable(
            str(about["model"]),
            shape,
            str(about["transform"]),
            idf,
            layers.astype(np.int64),
            centroids,
            workers=tuple(workers),
            made=Made(str(about.get("calibration") or ""), str(about.get("fitted") or "")),
            drift=drift,
        )
        told, found = (about["num_workers"], about["kept_layers"]), (table.num_workers, table.layers.size)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where} is damaged (entry {error}); fit it again") from None
    if told != found:
        raise InputError(
            f"{where} is damaged: it says {told[0]} workers and {told[1]} layers, and holds {found[0]} and {found[1]}; "
            "fit it again"
        )
    said = about.get("table_id") if about["version"] >= _WITH_ID else about.get("table_id", table.table_id)
    if said != table.table_id:
        raise InputError(
            f"{where} is damaged: it says that it is table {shown(said)}, and holds table {table.table_id}; fit it "
            "again"
        )
    if about["version"] < FORMAT.version:
        _log.warning("%s is of version %d: %s; fit it again to know", where, about["version"], table.unknown)
    return table


def _drift(arrays: Mapping[str, NDArray[Any]], where: str) -> DriftReference | None:
    """Return what drift is held against, None where the file does not hold it."""
    if "drift_cosines" not in arrays:
        return None
    parts = (
        member(arrays, "drift_cosines", "f", 2, where).astype(np.float32),
        member(arrays, "drift_strange", "f", 1, where).astype(np.float32),
        member(arrays, "drift_used", "iu", 2, where) != 0,
    )
    try:
        return DriftReference(*parts)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def check_model(table: RoutingTable, shape: MoEShape, model: str = "") -> None:
    """Refuse a table of another model: by its shape, and by its name where both have one."""
    own = table.shape
    if own != shape or (table.model and model and table.model != model):
        raise InputError(
            f"the routing table is of {_called(table.model, own)}, the requests are of {_called(model, shape)}; "
            "fit a table on a capture of that model"
        )


def check_workers(table: RoutingTable, num_workers: int) -> None:
    """Refuse a table of more or fewer workers than the fleet has."""
    if table.num_workers != num_workers:
        raise InputError(
            f"the table has {table.num_workers} centroids, the fleet {num_workers} workers; fit again with "
            f"--workers {num_workers}"
        )


def _called(model: str, shape: MoEShape) -> str:
    name = f"'{model}'" if model else "a model without a name"
    return f"{name} ({shape.num_layers} layers, {shape.num_experts} experts, {shape.experts_per_token} a token)"
