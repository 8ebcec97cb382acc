"""Spans of a trace as records, one a span that is a request to a model and says its tokens.

The forms in which spans leave a backend are a table, `_FORMS`, each known by several fields: OTLP as JSON (documents or
lines of the collector's file exporter; Tempo's `batches`), Jaeger's answers and downloads, Zipkin's lists, spans as
OpenTelemetry's libraries and Phoenix print them, and Langfuse's observations. What carries spans (`data`, `result`,
`trace`, lists) is opened whatever the form is.

A gateway and the engine behind it may both write a span for one request. Of spans inside one another the innermost
counts, since it knows the engine; a call to an embedding model or a tool inside is not the request. Where the spans
between the two are missing, or the two are siblings of two services, the trace, the tokens and the times tell that one
is around the other. Times of a span are
`span.start` (the request is known) and `span.end`, numbers of them in nanoseconds since 1970.

Sources: opentelemetry-proto trace.proto; Jaeger's internal/uimodel; Zipkin's api v2; OpenInference's
spec/semantic_conventions.md; OpenTelemetry's conventions of generative AI; Langfuse's API (Observation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lbopt.columns import quantity_of
from lbopt.exceptions import InputError
from lbopt.files import shown

_CLIENT = ("3", "SPAN_KIND_CLIENT", "CLIENT", "client", "SpanKind.CLIENT")
_ERROR = ("2", "STATUS_CODE_ERROR", "ERROR", "Error", "StatusCode.ERROR")

#: Operations (gen_ai.operation.name, openinference.span.kind, Langfuse's type) that call no model for text.
_OTHER = {"embeddings", "embedding", "retriever", "retrieval", "reranker", "tool", "execute_tool", "create_agent"}
_OTHER |= {"agent", "invoke_agent", "invoke_workflow", "chain", "guardrail", "evaluator", "span", "event", "prompt"}
_OPERATIONS = ("gen_ai.operation.name", "openinference.span.kind", "langfuse.observation.type", "type")

#: Nanoseconds of a microsecond, the unit of Jaeger's and Zipkin's times.
_MICRO = 1000

#: What holds spans of any form, or lists of them, by its name.
_HOLDERS = ("data", "result", "results", "trace", "traces", "_source")

#: What OTLP's file exporter writes into the same file.
_OTHER_SIGNALS = {"resourceMetrics", "resourceLogs", "resource_metrics", "resource_logs"}

_OTLP = ("resourceSpans", "resource_spans", "batches")


@dataclass(slots=True, kw_only=True)
class _Span:
    """One span of any form.

    Parameters
    ----------
    own, parent
        Ids of the trace and of the span; the parent is None of a root.
    times
        Start, first token if an event says it, and end: nanoseconds since 1970, or date-times as text; None where the
        span has none.
    fields
        Its attributes.
    resource
        Attributes of who wrote it.
    client
        Whether it is the caller's: who wrote it is then not who served the request.
    failed
        Whether it ended with an error.
    """

    own: tuple[str, str]
    parent: tuple[str, str] | None
    times: tuple[Any, Any, Any]
    fields: dict[str, Any]
    resource: dict[str, Any] = field(default_factory=dict)
    client: bool = False
    failed: bool = False

    def record(self) -> dict[str, Any]:
        """Return the columns of the span."""
        holder = "client.resource" if self.client else "resource"
        record = {**{f"{holder}.{key}": value for key, value in self.resource.items()}, **self.fields}
        if record.get("server.address") and record.get("server.port"):
            record["server.address"] = f"{record['server.address']}:{record['server.port']}"
        start, first_token, end = self.times
        record |= {"span.start": start, "span.end": end or None, "span.trace_id": self.own[0]}
        record["span.status"] = "error" if self.failed else None
        return record if first_token is None else record | {"event.first_token": first_token}

    def tokens(self) -> dict[str, Any]:
        """Return the attributes that count tokens."""
        return {key: value for key, value in self.fields.items() if _counts_tokens(key) and value not in (None, "")}

    def is_other(self) -> bool:
        """Tell whether the span says of itself that it is no call of a model for text."""
        return any(str(self.fields.get(name, "")).lower() in _OTHER for name in _OPERATIONS)


@lru_cache(maxsize=10_000)
def _counts_tokens(key: str) -> bool:
    return ("usage" in key and "tokens" in key) or (quantity_of(key) or ("", 1)) in (("prompt", 0), ("output", 0))


def is_spans(document: Any) -> bool:
    """Tell whether a JSON value holds spans in one of the forms."""
    if isinstance(document, list):
        return any(is_spans(one) for one in document[:3])
    if not isinstance(document, dict):
        return False
    if document.keys() & _OTHER_SIGNALS:
        return True
    return _form_of(document) is not None or any(
        isinstance(document.get(name), dict | list) and is_spans(document[name]) for name in _HOLDERS
    )


def span_records(
    documents: Iterable[Any], source: str
) -> tuple[list[tuple[int, dict[str, Any]]], dict[str, int], list[str]]:
    """Return number and fields of the spans that are requests, how many others there are, and notes.

    Raises
    ------
    InputError
        Where a group of spans is no list of objects, so that spans would be lost.
    """
    found: list[tuple[int, _Span]] = []
    above: dict[tuple[str, str], tuple[str, str] | None] = {}  # the parent of each span
    seen: dict[tuple[tuple[str, str], str], int] = {}
    left_out: Counter[str] = Counter()
    opened = _Opened(source)
    for number, span in enumerate((span for document in documents for span in opened.spans(document)), start=1):
        if not span.tokens():
            left_out["spans without tokens"] += 1
        elif span.is_other():
            left_out["spans of other calls"] += 1
        elif span.own[1] and (place := seen.setdefault((span.own, repr(span.tokens())), len(found))) < len(found):
            left_out["doubled spans"] += 1
            if found[place][1].client:  # the caller's half of a span that both write
                found[place] = (number, span)
        else:
            found.append((number, span))
        if span.parent != span.own:
            above[span.own] = span.parent
    outer = _outer([span for _, span in found], above)
    kept = [(number, span) for number, span in found if not span.own[1] or span.own not in outer]
    # A trace with several calls that succeeded is a conversation or an agent, and its id is none of a request.
    calls = Counter(span.own[0] for _, span in kept if not span.failed)
    records = []
    for number, span in kept:
        record = span.record()
        if calls[span.own[0]] > 1:
            record["span.trace_id"] = "/".join(span.own)
        records.append((number, record))
    left_out["spans around others"] = len(found) - len(kept)
    left_out["groups without spans"] = opened.bare
    left_out["metrics and logs"] = opened.others
    notes = [
        f"the query asked for at most {opened.limit:,} traces, and as many are here; the rest of the traffic is not"
    ]
    return records, {why: count for why, count in left_out.items() if count}, notes if opened.limit else []


def _outer(spans: list[_Span], above: dict[tuple[str, str], tuple[str, str] | None]) -> set[tuple[str, str]]:
    """Return the ids of what is around a span that counts tokens.

    Parameters
    ----------
    above
        The parent of each span in the file.
    """
    outer: set[tuple[str, str]] = set()
    alike: dict[tuple[str, str], list[_Span]] = {}  # of one trace and as many tokens
    for span in spans:
        alike.setdefault(_likeness(span), []).append(span)
    for span in spans:
        parent = above.get(span.own)
        while parent and parent not in outer:
            outer.add(parent)
            if parent not in above:  # the span is not in the file
                outer |= {one.own for one in alike[_likeness(span)] if one.own != span.own and _encloses(one, span)}
                break
            parent = above[parent]
    for group in alike.values():  # beside one another: a gateway and an engine that did not pass its context on
        if len({_service(span) for span in group}) > 1:
            outer |= {one.own for one in group if any(_is_around(one, other) for other in group)}
    return outer


def _service(span: _Span) -> str:
    return str(span.resource.get("service.name", ""))


def _is_around(one: _Span, other: _Span) -> bool:
    """Tell whether a span of one service lies around that of another service, and both name one model or none."""
    models, others = ({value for key, value in span.fields.items() if key.endswith(".model")} for span in (one, other))
    apart = bool(models and others) and models.isdisjoint(others)
    return _service(one) != _service(other) and not apart and _encloses(one, other)


def _likeness(span: _Span) -> tuple[str, str]:
    return span.own[0], str(sorted(str(value) for value in span.tokens().values()))


def _encloses(one: _Span, other: _Span) -> bool:
    """Tell whether a span begins no later than another and ends no earlier, and is longer."""
    (start, end), (begin, stop) = ((_moment(span.times[0]), _moment(span.times[2])) for span in (one, other))
    return (start, end) != (begin, stop) and start <= begin and stop <= end


def _moment(time: Any) -> tuple[int, str]:
    """Return what sorts times of one kind, nanoseconds or date-times."""
    text = str(time)
    return (int(text), "") if text.isdecimal() else (0, text)


class _Opened:
    """The spans in documents.

    Parameters
    ----------
    source
        The file, as errors call it.
    bare
        Groups whose list of spans is missing.
    others
        Documents of metrics or logs.
    limit
        The most traces that the query of an answer asked for, if it holds as many, else 0.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.bare = self.others = self.limit = 0

    def spans(self, document: Any) -> Iterator[_Span]:
        """Yield the spans of a document of any form."""
        if isinstance(document, list):
            for one in document:
                yield from self.spans(one)
            return
        if not isinstance(document, dict):
            raise InputError(f"{self.source} holds {shown(document)} among its spans; expected objects")
        if document.keys() & _OTHER_SIGNALS:
            self.others += 1
            return
        limit, data = document.get("limit"), document.get("data")
        if isinstance(limit, int) and isinstance(data, list) and 0 < limit <= len(data):
            self.limit = limit
        if form := _form_of(document):
            yield from form(self, document)
            return
        inner = [document[name] for name in _HOLDERS if isinstance(document.get(name), dict | list)]
        self.bare += not inner
        for one in inner:
            yield from self.spans(one)

    def otlp(self, document: dict[str, Any]) -> Iterator[_Span]:
        """Yield the spans of OTLP's groups by resource and scope."""
        for group in self._all(document, *_OTLP):
            resource = group.get("resource")
            of_resource = _attributes(resource) if isinstance(resource, dict) else {}
            for scope in self._all(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
                for span in self._all(scope, "spans"):
                    yield _otlp_span(span, of_resource)

    def jaeger(self, trace: dict[str, Any]) -> Iterator[_Span]:
        """Yield the spans of a trace of Jaeger; who wrote them is named in `processes`."""
        processes = trace.get("processes")
        for span in self._all(trace, "spans"):
            name = span.get("processID")
            writer = processes.get(name) if isinstance(processes, dict) and isinstance(name, str) else None
            yield _jaeger_span({"process": writer, "traceID": trace.get("traceID"), **span})

    def _all(self, holder: dict[str, Any], *names: str) -> list[dict[str, Any]]:
        """Return the objects of a list by one of its names; refuse what is no such list, since spans would be lost."""
        values = _first(holder, *names)
        if values is None:
            self.bare += 1
            return []
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            wrong = (
                next((one for one in values if not isinstance(one, dict)), values)
                if isinstance(values, list)
                else values
            )
            raise InputError(f"{self.source}: {names[0]} holds {shown(wrong)}; expected a list of objects")
        return values


def _otlp_span(span: dict[str, Any], resource: dict[str, Any]) -> _Span:
    trace, parent = _text(_field(span, "traceId")), _text(_field(span, "parentSpanId"))
    status = span.get("status")
    return _Span(
        own=(trace, _text(_field(span, "spanId"))),
        parent=(trace, parent) if parent else None,
        times=(
            _field(span, "startTimeUnixNano"),
            _first_token((one.get("name"), _field(one, "timeUnixNano")) for one in _objects(span.get("events"))),
            None if _field(span, "endTimeUnixNano") in (0, "0") else _field(span, "endTimeUnixNano"),
        ),
        fields=_attributes(span),
        resource=resource,
        client=str(_field(span, "kind")) in _CLIENT,
        failed=isinstance(status, dict) and str(status.get("code")) in _ERROR,
    )


def _jaeger_span(span: dict[str, Any]) -> _Span:
    trace = _text(span.get("traceID"))
    fields = _attributes(span, "tags")
    process = span.get("process")
    resource = _attributes(process, "tags") if isinstance(process, dict) else {}
    if isinstance(process, dict) and process.get("serviceName"):
        resource.setdefault("service.name", process["serviceName"])
    above = [one for one in _objects(span.get("references")) if str(one.get("refType", "")).upper() == "CHILD_OF"]
    parent = _text(above[0].get("spanID")) if above else _text(span.get("parentSpanID")).strip("0")
    logs = (
        (name, _nanoseconds(log.get("timestamp")))
        for log in _objects(span.get("logs"))
        for name in _attributes(log, "fields").values()
    )
    start = _nanoseconds(span.get("startTime"))
    return _Span(
        own=(trace, _text(span.get("spanID"))),
        parent=(_text(above[0].get("traceID") if above else None) or trace, parent) if parent else None,
        times=(start, _first_token(logs), _after(start, span.get("duration"))),
        fields=fields,
        resource=resource,
        client=str(fields.get("span.kind")) in _CLIENT,
        failed=str(fields.get("error")).lower() == "true" or str(fields.get("otel.status_code")) in _ERROR,
    )


def _zipkin_span(span: dict[str, Any]) -> _Span:
    trace, start = _text(span.get("traceId")), _nanoseconds(span.get("timestamp"))
    fields, local = _attributes(span, "tags"), span.get("localEndpoint")
    resource = {"service.name": local.get("serviceName")} if isinstance(local, dict) else {}
    notes = ((one.get("value"), _nanoseconds(one.get("timestamp"))) for one in _objects(span.get("annotations")))
    client = str(span.get("kind")) in _CLIENT
    written = {key: fields.pop(key) for key in list(fields) if client and key.startswith(("service.", "k8s.", "host."))}
    return _Span(
        own=(trace, _text(span.get("id"))),
        parent=(trace, _text(span["parentId"])) if span.get("parentId") else None,
        times=(start, _first_token(notes), _after(start, span.get("duration"))),
        fields=fields,
        resource=resource | written,
        client=client,
        failed="error" in fields or str(fields.get("otel.status_code")) in _ERROR,
    )


def _library_span(span: dict[str, Any]) -> _Span:
    context, status = span["context"], span.get("status")
    parent = span.get("parent_id")
    resource = span.get("resource")
    code = status.get("status_code") if isinstance(status, dict) else span.get("status_code")
    fields = _attributes(span)
    if isinstance(kind := span.get("span_kind"), str):
        fields.setdefault("openinference.span.kind", kind)
    return _Span(
        own=(_text(context.get("trace_id")), _text(context.get("span_id"))),
        parent=(_text(context.get("trace_id")), _text(parent)) if parent else None,
        times=(
            span.get("start_time"),
            _first_token((one.get("name"), one.get("timestamp")) for one in _objects(span.get("events"))),
            span.get("end_time"),
        ),
        fields=fields,
        resource=_attributes(resource) if isinstance(resource, dict) else {},
        client=str(span.get("kind")) in _CLIENT,
        failed=str(code) in _ERROR,
    )


def _langfuse_span(row: dict[str, Any]) -> _Span:
    """Return an observation of Langfuse; parts of a count (`input`, `input_cached_tokens`) stand side by side in it."""
    trace, parent = _text(row.get("traceId")), row.get("parentObservationId")
    usage: dict[str, Any] = next(
        (row[name] for name in ("usageDetails", "usage") if isinstance(row.get(name), dict) and row[name]), {}
    )
    fields = {name: value for name, value in row.items() if not isinstance(value, dict | list)}
    fields = {
        name: fields[name]
        for name in fields
        if name not in ("id", "traceId", "startTime", "endTime", "input", "output")
    }
    fields |= _flat(row["metadata"], "metadata.") if isinstance(row.get("metadata"), dict) else {}
    for name, begin, flat in (("prompt", "input", "promptTokens"), ("completion", "output", "completionTokens")):
        counts = [value for key, value in usage.items() if begin in key and isinstance(value, int | float)]
        for left in (flat, f"{begin}Usage"):
            fields.pop(left, None)
        if counts or row.get(flat) is not None:
            fields[f"usage.{name}_tokens"] = sum(counts) if counts else row[flat]
    return _Span(
        own=(trace, _text(row.get("id"))),
        parent=(trace, _text(parent)) if parent else None,
        times=(row.get("startTime"), fields.pop("completionStartTime", None), row.get("endTime")),
        fields=fields,
        failed=row.get("level") == "ERROR",
    )


_Form = Callable[[_Opened, dict[str, Any]], Iterable[_Span]]

#: Fields that are all there, a field of which one is there, and how the object is read.
_FORMS: tuple[tuple[frozenset[str], frozenset[str], _Form], ...] = tuple(
    (frozenset(every), frozenset(one), read)
    for every, one, read in (
        ((), _OTLP, _Opened.otlp),
        (("spans",), ("processes", "traceID"), _Opened.jaeger),
        (("spanID", "operationName", "startTime", "duration"), ("tags",), lambda _, span: (_jaeger_span(span),)),
        (("attributes",), ("startTimeUnixNano", "start_time_unix_nano"), lambda _, span: (_otlp_span(span, {}),)),
        (("traceId", "id", "timestamp"), ("localEndpoint", "kind"), lambda _, span: (_zipkin_span(span),)),
        (("context", "start_time", "attributes"), ("end_time",), lambda _, span: (_library_span(span),)),
        (("traceId", "startTime", "type"), ("parentObservationId",), lambda _, span: (_langfuse_span(span),)),
    )
)


def _form_of(document: dict[str, Any]) -> _Form | None:
    if "context" in document and not isinstance(document["context"], dict):
        return None
    names = document.keys()
    return next((read for every, one, read in _FORMS if every <= names and one & names), None)


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _first(record: dict[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if name in record), None)


def _field(record: dict[str, Any], name: str) -> Any:
    """Return a field by its name in JSON, or in the protocol's own spelling (start_time_unix_nano)."""
    if name in record:
        return record[name]
    return record.get("".join("_" + letter.lower() if letter.isupper() else letter for letter in name))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _nanoseconds(micro: Any) -> Any:
    """Return a time in microseconds, a number or its text, in nanoseconds; what is none is left to the table."""
    try:
        return round(micro * _MICRO) if isinstance(micro, float) else int(micro) * _MICRO
    except (TypeError, ValueError, OverflowError):
        return micro


def _after(start: Any, micro: Any) -> Any:
    took = _nanoseconds(micro)
    return start + took if isinstance(start, int) and isinstance(took, int) else None


def _first_token(events: Iterable[tuple[Any, Any]]) -> Any:
    """Return the time of the first event that is called like a first token or chunk."""
    named = [(str(name).lower(), time) for name, time in events if time is not None]
    return next((time for name, time in named if "first" in name and ("token" in name or "chunk" in name)), None)


def _attributes(holder: dict[str, Any], name: str = "attributes") -> dict[str, Any]:
    """Return attributes by name, written as an object (of objects) or as a list of key and value."""
    attributes = holder.get(name) or []
    if isinstance(attributes, dict):
        return _flat(attributes)
    return {str(entry["key"]): _value(entry.get("value")) for entry in _objects(attributes) if "key" in entry}


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


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
