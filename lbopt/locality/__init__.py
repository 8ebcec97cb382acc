"""Expert locality: which experts a request will use in decode, foretold from its prompt (ELDR, arXiv 2607.00466).

A synthetic workload (`gate`, `workload`), signatures of requests and how well they foretell decode (`signature`), and
the cache that keeps them beside KV blocks (`signature_cache`). The offline fit with its choice of layers (`fit`) of a
capture (`capture`), the routing table that it makes and its file (`routing_table`), the decision for a live request
(`band_router`), and the watch on drift (`drift`).
"""

from lbopt.locality.band_router import BandRouter
from lbopt.locality.capture import Capture, capture_of, read_capture, write_capture
from lbopt.locality.drift import Alarm, DriftReading, DriftWatch
from lbopt.locality.fit import FitConfig, LayerMask, RoutingFit, fit_layer_mask, fit_routing
from lbopt.locality.routing_table import (
    DriftReference,
    Made,
    RoutingTable,
    check_model,
    check_workers,
    drift_reference,
    read_table,
    write_table,
)
from lbopt.locality.signature import (
    TRANSFORMS,
    IdfTable,
    cosine_distances,
    fit_idf,
    rank_correlation,
    sample_pairs,
    signature_quality,
    signatures,
    transformed,
)
from lbopt.locality.signature_cache import BlockState, SignatureCache
from lbopt.locality.wire_form import counts_as_text, counts_of_text
from lbopt.locality.workload import (
    ExpertActivity,
    GateLaw,
    MoEShape,
    WorkloadConfig,
    World,
    draw_activity,
    draw_domains,
    draw_scores,
    draw_workload,
    draw_world,
    expected_union,
    language_shares,
    language_workload,
    picks,
    task_shares,
    task_workload,
    zipf_shares,
)

__all__ = [
    "TRANSFORMS",
    "Alarm",
    "BandRouter",
    "BlockState",
    "Capture",
    "DriftReading",
    "DriftReference",
    "DriftWatch",
    "ExpertActivity",
    "FitConfig",
    "GateLaw",
    "IdfTable",
    "LayerMask",
    "Made",
    "MoEShape",
    "RoutingFit",
    "RoutingTable",
    "SignatureCache",
    "WorkloadConfig",
    "World",
    "capture_of",
    "check_model",
    "check_workers",
    "cosine_distances",
    "counts_as_text",
    "counts_of_text",
    "draw_activity",
    "draw_domains",
    "draw_scores",
    "draw_workload",
    "draw_world",
    "drift_reference",
    "expected_union",
    "fit_idf",
    "fit_layer_mask",
    "fit_routing",
    "language_shares",
    "language_workload",
    "picks",
    "rank_correlation",
    "read_capture",
    "read_table",
    "sample_pairs",
    "signature_quality",
    "signatures",
    "task_shares",
    "task_workload",
    "transformed",
    "write_capture",
    "write_table",
    "zipf_shares",
]


def __dir__() -> list[str]:
    return sorted(__all__)
