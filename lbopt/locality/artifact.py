"""The routing table as a file: one .npz that the router loads when it starts.

Entries: `layers`, `centroids`, `idf` where the transform has weights, and the JSON text `about` with format, version,
model, shape, transform and the numbers of workers, kept layers and calibration requests. Version 2 adds the names of
the workers, the table's number, the hash of the calibration requests and the date of the fit, and with `drift_cosines`,
`drift_strange` and `drift_used` what drift is held against. A file of version 1 is read, and one sentence in the log
says what it does not tell. What is read is checked as a
new table is, so a file that was tampered with or cut is refused when it is loaded, not when a request comes.

Source: ELDR (arXiv 2607.00466), whose router loads one such file: layer mask, IDF table, K unit centroids.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.locality.archive import Format, member, read_archive, write_archive
from lbopt.locality.drift_reference import DriftReference
from lbopt.locality.gate import MoEShape
from lbopt.locality.routing_table import Made, RoutingTable
from lbopt.locality.signature import IdfTable

FORMAT = Format("lbopt-routing-table", 2, "routing table", "lbopt locality fit")

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
