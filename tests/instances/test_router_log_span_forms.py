"""One trace in the forms of several backends reads to the same log, and spans that are no request are counted."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

LOGS = Path(__file__).resolve().parents[2] / "examples" / "logs"
SAMPLE = LOGS / "vllm_spans.jsonl"


def spans():
    """Each span of the sample with the attributes of its resource, both as plain objects."""
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for span in group["scopeSpans"][0]["spans"]:
                yield span, plain(span), plain(group["resource"])


def plain(holder):
    scale = {"intValue": int}
    return {
        entry["key"]: scale.get(kind, lambda x: x)(value)
        for entry in holder["attributes"]
        for kind, value in entry["value"].items()
    }


def micro(span):
    start, end = (int(span[name]) // 1000 for name in ("startTimeUnixNano", "endTimeUnixNano"))
    return start, end - start


def tags(fields):
    kinds = {str: "string", int: "int64", float: "float64"}
    return [{"key": key, "type": kinds[type(value)], "value": value} for key, value in fields.items()]


def jaeger_span(span, fields):
    start, took = micro(span)
    own = {"traceID": span["traceId"], "spanID": span["spanId"], "operationName": span["name"], "references": []}
    return own | {"startTime": start, "duration": took, "tags": tags(fields), "logs": [], "processID": "p1"}


def traces():
    for span, fields, resource in spans():
        writer = {"serviceName": resource.pop("service.name"), "tags": tags(resource)}
        yield {"traceID": span["traceId"], "spans": [jaeger_span(span, fields)], "processes": {"p1": writer}}


def jaeger_stored():
    for trace in traces():
        yield from ({**span, "process": trace["processes"]["p1"]} for span in trace["spans"])


def zipkin():
    for span, fields, resource in spans():
        start, took = micro(span)
        all_tags = {key: str(value) for key, value in (fields | resource).items()}
        own = {"traceId": span["traceId"], "id": span["spanId"], "name": span["name"], "kind": "SERVER"}
        yield own | {"timestamp": start, "duration": took, "localEndpoint": {"serviceName": "vllm"}, "tags": all_tags}


def library():
    for span, fields, resource in spans():
        ids = {"trace_id": "0x" + span["traceId"], "span_id": "0x" + span["spanId"], "trace_state": "[]"}
        start, end = (
            str(np.datetime64(int(span[name]), "ns"))[:26] + "Z" for name in ("startTimeUnixNano", "endTimeUnixNano")
        )
        own = {"name": span["name"], "context": ids, "kind": "SpanKind.SERVER", "parent_id": None, "events": []}
        times = {"start_time": start, "end_time": end, "status": {"status_code": "UNSET"}}
        yield own | times | {"attributes": fields, "resource": {"attributes": resource, "schema_url": ""}}


def phoenix():
    names = {
        "gen_ai.usage.prompt_tokens": "llm.token_count.prompt",
        "gen_ai.usage.completion_tokens": "llm.token_count.completion",
    }
    for one in library():
        fields = {
            names.get(key, key): value
            for key, value in (one.pop("attributes") | one.pop("resource")["attributes"]).items()
        }
        yield one | {"id": "U3Bhbg==", "span_kind": "LLM", "status_code": "OK", "attributes": fields}


def otlp():
    return [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]


FORMS = {
    "the answer of Jaeger": lambda: {"data": list(traces()), "total": 0, "limit": 0, "errors": None},
    "one trace a line": lambda: list(traces()),
    "spans as Jaeger stores them": lambda: list(jaeger_stored()),
    "answers of its storage": lambda: [{"_index": "jaeger-span", "_source": one} for one in jaeger_stored()],
    "lists of Zipkin": lambda: [[one] for one in zipkin()],
    "what libraries print": lambda: list(library()),
    "the answer of Phoenix": lambda: {"data": list(phoenix()), "next_cursor": None},
    "the third API of Jaeger": lambda: {"result": otlp()},
    "a trace of Tempo": lambda: {"trace": {"batches": [one for line in otlp() for one in line["resourceSpans"]]}},
    "bare spans": lambda: [span | {"attributes": span["attributes"] + other} for span, other in bare()],
}


def bare():
    for line in otlp():
        for group in line["resourceSpans"]:
            yield from ((span, group["resource"]["attributes"]) for span in group["scopeSpans"][0]["spans"])


def save(tmp_path, value, *, lines=False, indent=None):
    text = "".join(json.dumps(one) + "\n" for one in value) if lines else json.dumps(value, indent=indent)
    path = tmp_path / "spans.json"
    path.write_text(text, encoding="utf-8")
    return path


def same(log, atol=1e-6):
    right = read_router_log(SAMPLE)
    np.testing.assert_allclose(log.arrival, right.arrival, atol=atol)
    np.testing.assert_allclose(log.start, right.start, atol=atol)
    np.testing.assert_allclose(log.finish, right.finish, atol=atol)
    np.testing.assert_array_equal(log.prompt, right.prompt)
    np.testing.assert_array_equal(log.output, right.output)
    assert log.workers == right.workers
    np.testing.assert_array_equal(log.worker, right.worker)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_reads_to_the_same_log(name, tmp_path):
    document = FORMS[name]()
    log = read_router_log(save(tmp_path, document))
    same(log)
    assert log.left_out == {}
    same(read_router_log(save(tmp_path, document, indent=1)))
    if isinstance(document, list) and isinstance(document[0], dict):
        same(read_router_log(save(tmp_path, document, lines=True)))


def test_the_innermost_span_of_a_trace_of_jaeger_counts(tmp_path):
    document = FORMS["the answer of Jaeger"]()
    trace = document["data"][0]
    engine = trace["spans"][0]
    gateway = copy.deepcopy(engine) | {"spanID": "aa", "processID": "p2"}
    gateway["startTime"] -= 1000
    gateway["duration"] += 2000
    engine["references"] = [{"refType": "CHILD_OF", "traceID": engine["traceID"], "spanID": "aa"}]
    trace["spans"].append(gateway)
    trace["processes"]["p2"] = {"serviceName": "gateway", "tags": tags({"service.instance.id": "gateway"})}
    log = read_router_log(save(tmp_path, document))
    same(log)
    assert log.left_out == {"spans around others": 1}
    engine["references"][0]["spanID"] = "bb"  # the span between the two is missing
    assert read_router_log(save(tmp_path, document)).left_out == {"spans around others": 1}
    engine["references"][0]["refType"] = "FOLLOWS_FROM"  # beside, not inside
    same(read_router_log(save(tmp_path, document)))
    trace["processes"]["p2"]["serviceName"] = trace["processes"]["p1"]["serviceName"]  # two calls of one service
    with pytest.raises(InputError, match="have one id"):
        read_router_log(save(tmp_path, document))


def test_the_caller_is_no_worker_and_an_error_no_answer(tmp_path):
    document = FORMS["the answer of Jaeger"]()
    for trace in document["data"]:
        trace["spans"][0]["tags"] += tags({"span.kind": "client"})
    with pytest.raises(InputError, match="which worker served"):
        read_router_log(save(tmp_path, document))
    document = FORMS["the answer of Jaeger"]()
    document["data"][0]["spans"][0]["tags"].append({"key": "error", "type": "bool", "value": True})
    assert (read_router_log(save(tmp_path, document)).ending == "cancelled").sum() == 1


def test_the_first_token_of_an_event_starts_decoding(tmp_path):
    documents = list(traces())
    for trace in documents:
        span = trace["spans"][0]
        values = {tag["key"]: tag["value"] for tag in span["tags"]}
        at = span["startTime"] + round(1e6 * values["gen_ai.latency.time_to_first_token"])
        span["logs"] = [{"timestamp": at, "fields": tags({"event": "gen_ai.first_token"})}]
        span["tags"] = [tag for tag in span["tags"] if "latency" not in tag["key"]]
    log = read_router_log(save(tmp_path, {"data": documents}))
    same(log)


def test_spans_that_are_no_request_are_counted(tmp_path):
    rows = list(phoenix())
    rows += [copy.deepcopy(rows[0])]  # exported twice
    agent = copy.deepcopy(rows[1]) | {"context": {"trace_id": "t", "span_id": "a"}, "span_kind": "AGENT"}
    embedding = copy.deepcopy(rows[1]) | {"context": {"trace_id": "t", "span_id": "b"}, "span_kind": "EMBEDDING"}
    log = read_router_log(save(tmp_path, [*rows, agent, embedding], lines=True))
    same(log)
    assert log.left_out == {"doubled spans": 1, "spans of other calls": 2}


def test_calls_of_one_trace_are_requests_of_their_own(tmp_path):
    rows = list(phoenix())
    for row in rows:
        row["context"]["trace_id"] = "conversation"
        del row["attributes"]["gen_ai.request.id"]
    log = read_router_log(save(tmp_path, rows))
    same(log)
    assert (log.ending == "finished").all()


def observation(span, fields, resource):
    start, end = (int(span[name]) for name in ("startTimeUnixNano", "endTimeUnixNano"))
    first = start + round(1e9 * fields["gen_ai.latency.time_to_first_token"])
    times = dict(zip(("startTime", "completionStartTime", "endTime"), (start, first, end), strict=True))
    own = {"id": span["spanId"], "traceId": span["traceId"], "parentObservationId": None, "type": "GENERATION"}
    own |= {name: str(np.datetime64(time // 1000, "us")) + "Z" for name, time in times.items()}
    prompt, output = (fields[f"gen_ai.usage.{name}_tokens"] for name in ("prompt", "completion"))
    usage = {"input": prompt - 100, "input_cached_tokens": 100, "output": output, "total": prompt + output}
    return own | {"usageDetails": usage, "metadata": {"worker": resource["service.instance.id"]}, "level": "DEFAULT"}


def test_observations_of_langfuse(tmp_path):
    rows = [observation(*one) for one in spans()]
    around = {**rows[0], "id": "root", "type": "SPAN", "usageDetails": {}}
    log = read_router_log(save(tmp_path, {"data": [around, *rows], "meta": {"page": 1}}))
    same(log, atol=1e-5)
    assert log.left_out == {"spans without tokens": 1}


def test_halves_of_one_span_and_other_signals_are_counted(tmp_path):
    rows = list(zipkin())
    caller = copy.deepcopy(rows[0]) | {"kind": "CLIENT"}
    log = read_router_log(save(tmp_path, [caller, *rows]))
    same(log)
    assert log.left_out == {"doubled spans": 1}
    log = read_router_log(save(tmp_path, [{"resourceMetrics": []}, *otlp(), {"resourceLogs": []}], lines=True))
    same(log)
    assert log.left_out == {"metrics and logs": 2}
    with pytest.raises(InputError, match=r"none says its tokens.*metrics and logs"):
        read_router_log(save(tmp_path, [{"resourceMetrics": []}], lines=True))


def test_an_answer_as_long_as_its_limit_is_a_sample(tmp_path):
    log = read_router_log(save(tmp_path, {"data": list(traces()), "limit": 48, "total": 0}))
    assert any("at most 48 traces" in note for note in log.notes)


def test_objects_printed_one_after_the_other(tmp_path):
    path = tmp_path / "console.json"
    path.write_text("\n".join(json.dumps(one, indent=4) for one in library()), encoding="utf-8")
    same(read_router_log(path))


def test_loaded_engines_have_first_tokens_of_seconds(tmp_path):
    """A time to first token of 2 could be seconds or milliseconds; the attribute of vLLM is in seconds."""
    documents = otlp()
    for document in documents:
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["endTimeUnixNano"] = str(int(span["endTimeUnixNano"]) + 2 * 10**9)
            for entry in span["attributes"]:
                if "time_to_first" in entry["key"]:
                    entry["value"]["doubleValue"] += 2
    log = read_router_log(save(tmp_path, documents, lines=True))
    np.testing.assert_allclose(log.finish - log.start, read_router_log(SAMPLE).finish - read_router_log(SAMPLE).start)
