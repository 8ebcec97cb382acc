"""The tables of a routing fit and of a routing table, for a terminal."""

from __future__ import annotations

from lbopt.locality import RoutingTable
from lbopt.locality.fit import RoutingFit
from lbopt.table import Table

_HEADERS = ("what", "value")


def fit_table(fit: RoutingFit, seconds: float) -> Table:
    """Return what was fitted, how good it is, and how long it took."""
    requests, sizes = fit.labels.size, fit.sizes
    kind = "balanced" if fit.balanced else "vanilla"
    rows = [
        ("calibration requests", f"{requests:,}"),
        *_table_rows(fit.table),
        ("rho with all layers", f"{fit.quality_of_all:.4f}"),
        ("rho with the kept layers", f"{fit.quality:.4f}"),
        ("cluster sizes", f"{kind}, {sizes.min()} to {sizes.max()}"),
        ("mean similarity to the own centroid", f"{1 - fit.objective / requests:.4f}"),
        ("seconds", f"{seconds:.2f}"),
    ]
    return Table(
        "Routing fit",
        "rho: rank correlation over pairs of requests of distances of signatures and of decode activation. The first "
        "fit on a machine compiles for some ten seconds.",
        _HEADERS,
        rows,
    )


def routing_table_table(table: RoutingTable) -> Table:
    """Return what a routing table is of."""
    requests = [] if table.idf is None else [("calibration requests", f"{table.idf.num_requests:,}")]
    near = table.centroids @ table.centroids.T
    between = (near.sum() - near.trace()) / max(1, near.size - len(near))
    rows = [*requests, *_table_rows(table), ("mean similarity of two centroids", f"{between:.4f}")]
    return Table("Routing table", "One centroid for each decode worker.", _HEADERS, rows)


def _table_rows(table: RoutingTable) -> list[tuple[str, str]]:
    shape, layers = table.shape, sorted(table.layers.tolist())
    return [
        ("model", table.model or "(no name)"),
        ("shape", f"{shape.num_layers} layers, {shape.num_experts} experts, {shape.experts_per_token} a token"),
        ("transform", table.transform),
        ("layers kept", f"{len(layers)} of {shape.num_layers}: {' '.join(map(str, layers))}"),
        ("workers", f"{table.num_workers:,}"),
        ("names of workers", " ".join(table.workers) or "none"),
        ("table", table.table_id),
        ("calibration requests are", table.made.calibration or "unknown: the file is of an earlier version"),
        ("fitted", table.made.fitted or "unknown: the file is of an earlier version"),
        ("drift is held against", "the calibration requests" if table.drift is not None else "nothing"),
    ]
