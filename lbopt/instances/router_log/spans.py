"""OpenTelemetry spans (OTLP as JSON) as records: one a span that says its tokens.

A gateway and the engine behind it may both write a span for one request. Of spans inside one another the innermost
counts, since it knows the engine. Times of a span are `span.start` (the request is known) and `span.end`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown

_CLIENT = (3, "3", "SPAN_KIND_CLIENT")
_ERROR = (2, "2", "STATUS_CODE_ERROR")


def is_spans(document: Any) -> bool:
    """Tell whether a JSON value holds spans in the form of OTLP."""
    return isinstance(document, dict) and bool({"resourceSpans", "resource_spans", "batches"} & document.keys())


def span_records(documents: Iterable[Any], source: str) -> tuple[list[tuple[int, dict[str, Any]]], dict[str, int]]:
    """Return number and fields of the spans that are requests, and how many others there are.

    Raises
    ------
    InputError
        Where a group of spans is no list of objects, so that spans would be lost.
    """
    found: list[tuple[int, dict[str, Any], str | None, str | None]] = []
    above: dict[str | None, str | None] = {}  # the parent of each span
    number = silent = 0
    bare: list[str] = []
    for span, resource in _spans_in(documents, source, bare):
        number += 1
        own, parent = _id(span, "spanId"), _id(span, "parentSpanId")
        above[own] = parent
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
        found.append((number, record, own, parent))
    outer = set()
    for _, _, _, parent in found:
        while parent and parent not in outer:
            outer.add(parent)
            parent = above.get(parent)
    records = [(place, record) for place, record, own, _ in found if own is None or own not in outer]
    left_out = {
        "spans without tokens": silent,
        "spans around others": len(found) - len(records),
        "groups without spans": len(bare),
    }
    return records, {reason: count for reason, count in left_out.items() if count}


def _spans_in(
    documents: Iterable[Any], source: str, bare: list[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each span with the attributes of its resource; `bare` takes the names of the lists that are missing."""
    for document in documents:
        for group in _all(document, source, bare, "resourceSpans", "resource_spans", "batches"):
            resource = group.get("resource")
            attributes = _attributes(resource) if isinstance(resource, dict) else {}
            for scope in _all(group, source, bare, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
                for span in _all(scope, source, bare, "spans"):
                    yield span, attributes


def _all(holder: Any, source: str, bare: list[str], *names: str) -> list[dict[str, Any]]:
    """Return the objects of a list by one of its names; refuse what is no such list, since spans would be lost.

    Parameters
    ----------
    bare
        Takes the first name where the list is missing (changed in place).
    """
    values = _first(holder, *names) if isinstance(holder, dict) else holder
    if values is None:
        bare.append(names[0])
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        wrong = (
            next((one for one in values if not isinstance(one, dict)), values) if isinstance(values, list) else values
        )
        raise InputError(f"{source}: {names[0]} holds {shown(wrong)}; expected a list of objects")
    return values


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _first(record: dict[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if name in record), None)


def _field(record: dict[str, Any], name: str) -> Any:
    """Return a field by its name in JSON, or in the protocol's own spelling (start_time_unix_nano)."""
    if name in record:
        return record[name]
    return record.get("".join("_" + letter.lower() if letter.isupper() else letter for letter in name))


def _id(span: dict[str, Any], name: str) -> str | None:
    value = _field(span, name)
    return value if isinstance(value, str) else None


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
            return _value(values[0]) if isinstance(values, list) and values else None
        if name not in ("kvlistValue", "kvlist_value", "bytesValue", "bytes_value"):
            return inner
    return None


def _status(span: dict[str, Any]) -> str | None:
    status = span.get("status")
    return "error" if isinstance(status, dict) and status.get("code") in _ERROR else None
