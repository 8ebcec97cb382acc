"""Exports of engines, as a table: the signature by which each is known, and what to switch on where it lacks something.

A format whose columns have names of their own, or need another way in, is one entry more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lbopt.instances.router_log.table import Table

_ENGINE_INSTANCE = "; give each engine its name, OTEL_RESOURCE_ATTRIBUTES=service.instance.id=NAME, or add an attribute"


@dataclass(frozen=True, slots=True)
class Export:
    """One format of logs.

    Parameters
    ----------
    name
        What it is called.
    signature
        Parts of the names of its columns, all of which are there.
    spans
        Whether it is of spans; otherwise of rows.
    hints
        By quantity, what to add to the error where no column holds it.
    """

    name: str
    signature: tuple[str, ...] = ()
    spans: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)


EXPORTS = (
    Export(
        "vLLM",
        ("gen_ai.latency.time_in_queue",),
        spans=True,
        hints={
            "worker": f"{_ENGINE_INSTANCE} dp_rank",
            "start": "; the attribute gen_ai.latency.time_to_first_token says it",
        },
    ),
    Export(
        "spans",
        spans=True,
        hints={
            "worker": f"{_ENGINE_INSTANCE} worker; the span of a client says it in server.address",
            "start": "; the attribute gen_ai.response.time_to_first_chunk says it for answers that stream",
        },
    ),
    Export(
        "SGLang",
        ("e2e_latency", "completion_tokens"),
        hints={
            "worker": "; newer servers write dp_rank into meta_info, else add a field worker as you collect the files",
            "start": "; start the server with --enable-metrics, which adds prefill_finished_time to meta_info",
            "arrival": "; start the server with --enable-metrics, which adds request_received_ts to meta_info",
        },
    ),
    Export("table"),
)


def export_of(table: Table) -> Export:
    """Return the first format of the table whose signature a log has."""
    names = " ".join(table.columns)
    return next(
        one for one in EXPORTS if one.spans == (table.kind == "spans") and all(part in names for part in one.signature)
    )
