"""OpenTelemetry spans (OTLP as JSON) as records: one a span that says its tokens.

A gateway and the engine behind it may both write a span for one request. Of spans inside one another the innermost
counts, since it knows the engine. Times of a span are `span.start` (the request is known) and `span.end`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_CLIENT = (3, "3", "SPAN_KIND_CLIENT")
_ERROR = (2, "2", "STATUS_CODE_ERROR")


def is_spans(document: Any) -> bool:
    """Tell whether a JSON value holds spans in the form of OTLP."""
    return isinstance(document, dict) and bool({"resourceSpans", "resource_spans", "batches"} & document.keys())


def span_records(documents: Iterable[Any]) -> tuple[list[tuple[int, dict[str, Any]]], dict[str, int]]:
    """Return number and fields of the spans that are requests, and how many others there are."""
    found: list[tuple[int, dict[str, Any], Any, Any]] = []
    above: dict[Any, Any] = {}  # the parent of each span
    number = silent = 0
    for span, resource in _spans(documents):
        number += 1
        above[_field(span, "spanId")] = _field(span, "parentSpanId")
        attributes = _attributes(span)
        if not any("usage" in key and "tokens" in key for key in attributes):
            silent += 1
            continue
        # Who wrote the span of a client is not who served its request.
        holder = "client.resource" if _field(span, "kind") in _CLIENT else "resource"
        record = {**{f"{holder}.{key}": value for key, value in resource.items()}, **attributes}
        if record.get("server.address") and record.get("server.port"):
            record["server.address"] = f"{record['server.address']}:{record['server.port']}"
        record["span.start"] = _field(span, "startTimeUnixNano")
        record["span.end"] = _field(span, "endTimeUnixNano") or None
        record["span.trace_id"] = _field(span, "traceId")
        record["span.status"] = _status(span)
        for event in _objects(span.get("events")):
            if "first" in str(event.get("name", "")).lower():
                record[f"event.{event['name']}"] = _field(event, "timeUnixNano")
        found.append((number, record, _field(span, "spanId"), _field(span, "parentSpanId")))
    outer = set()
    for _, _, _, parent in found:
        while parent and parent not in outer:
            outer.add(parent)
            parent = above.get(parent)
    records = [(place, record) for place, record, own, _ in found if own is None or own not in outer]
    left_out = {"spans without tokens": silent, "spans around others": len(found) - len(records)}
    return records, {reason: count for reason, count in left_out.items() if count}


def _spans(documents: Iterable[Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each span with the attributes of its resource."""
    for document in documents:
        groups = _first(document, "resourceSpans", "resource_spans", "batches") if isinstance(document, dict) else None
        for group in _objects(groups):
            resource = _attributes(group.get("resource") or {})
            for scope in _objects(_first(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")):
                for span in _objects(scope.get("spans")):
                    yield span, resource


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _first(record: dict[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if name in record), None)


def _field(record: dict[str, Any], name: str) -> Any:
    """Return a field by its name in JSON, or in the protocol's own spelling (start_time_unix_nano)."""
    if name in record:
        return record[name]
    return record.get("".join("_" + letter.lower() if letter.isupper() else letter for letter in name))


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    attributes = holder.get("attributes") or []
    if isinstance(attributes, dict):
        return dict(attributes)
    return {str(entry["key"]): _value(entry.get("value")) for entry in _objects(attributes) if "key" in entry}


def _value(value: Any) -> Any:
    """Return what ``{"intValue": "7"}`` holds; of an array its first entry."""
    if not isinstance(value, dict):
        return value
    for name, inner in value.items():
        if name in ("arrayValue", "array_value"):
            values = inner.get("values") if isinstance(inner, dict) else None
            return _value(values[0]) if values else None
        if name not in ("kvlistValue", "kvlist_value", "bytesValue", "bytes_value"):
            return inner
    return None


def _status(span: dict[str, Any]) -> str | None:
    status = span.get("status")
    return "error" if isinstance(status, dict) and status.get("code") in _ERROR else None
