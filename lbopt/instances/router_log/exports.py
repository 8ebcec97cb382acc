"""Exports of engines that are recognised, and what to switch on where one of them lacks a quantity."""

from __future__ import annotations

from lbopt.instances.router_log.table import Table

_ENGINE_INSTANCE = "; give each engine its name, OTEL_RESOURCE_ATTRIBUTES=service.instance.id=NAME, or add an attribute"

_HINTS = {
    "vLLM": {
        "worker": f"{_ENGINE_INSTANCE} dp_rank",
        "start": "; the attribute gen_ai.latency.time_to_first_token says it",
    },
    "SGLang": {
        "worker": "; newer servers write dp_rank into meta_info, else add a field worker when you collect the files",
        "start": "; start the server with --enable-metrics, which adds prefill_finished_time to meta_info",
        "arrival": "; start the server with --enable-metrics, which adds request_received_ts to meta_info",
    },
    "spans": {
        "worker": f"{_ENGINE_INSTANCE} worker; the span of a client says it in server.address",
        "start": "; the attribute gen_ai.response.time_to_first_chunk says it for answers that stream",
    },
}


def export_of(table: Table) -> str | None:
    """Return "vLLM", "SGLang" or "spans" for a recognised export, else None."""
    names = " ".join(table.columns)
    if table.kind == "spans":
        return "vLLM" if "gen_ai.latency.time_in_queue" in names else "spans"
    if "e2e_latency" in names and "completion_tokens" in names:
        return "SGLang"
    return None


def hints_of(table: Table) -> dict[str, str]:
    """Return what to add to the error about a missing quantity."""
    return _HINTS.get(export_of(table) or "", {})
