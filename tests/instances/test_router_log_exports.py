"""Exports of engines as they write them: the sample logs of the examples, and spans that are no request."""

import copy
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

LOGS = Path(__file__).resolve().parents[2] / "examples" / "logs"
SAMPLES = ["router.csv", "vllm_spans.jsonl", "gen_ai_spans.jsonl", "sglang_requests.jsonl"]


def maker():
    spec = importlib.util.spec_from_file_location("make_samples", LOGS / "make_samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(name):
    return [json.loads(line) for line in (LOGS / name).read_text(encoding="utf-8").splitlines()]


def save(tmp_path, records):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_reads_to_what_was_drawn(name):
    arrival, _, ttft, finish, prompt, output, worker = maker().draw()
    log = read_router_log(LOGS / name)
    order = np.argsort(arrival + ttft)
    assert len(log) == 48
    assert log.left_out == {}
    assert (log.ending == "finished").all()
    np.testing.assert_allclose(log.start, (arrival + ttft)[order] - arrival.min(), atol=1e-6)
    np.testing.assert_allclose(log.finish, finish[order] - arrival.min(), atol=1e-6)
    np.testing.assert_array_equal(log.prompt, prompt[order] + 1)  # the first token is out when decoding starts
    np.testing.assert_array_equal(log.output, output[order] - 1)
    np.testing.assert_array_equal(log.worker, worker[order])
    assert (log.origin or "2025-01-01T00:00:00").startswith("2025-01-01T00:00:00")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_what_its_script_writes(name, tmp_path):
    maker().main(tmp_path)
    assert (tmp_path / name).read_bytes() == (LOGS / name).read_bytes()


@pytest.mark.parametrize("name", ["vllm_spans.jsonl", "gen_ai_spans.jsonl"])
def test_spans_without_a_worker_say_what_to_add(name, tmp_path):
    documents = lines(name)
    for document in documents:
        document["resourceSpans"][0]["resource"] = {}
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["attributes"] = [entry for entry in span["attributes"] if "server" not in entry["key"]]
    with pytest.raises(InputError, match=r"which worker served.*service\.instance\.id"):
        read_router_log(save(tmp_path, documents))


def test_sglang_without_metrics_says_what_to_switch_on(tmp_path):
    kept = ("id", "finish_reason", "prompt_tokens", "completion_tokens", "e2e_latency", "dp_rank")
    records = [{key: record[key] for key in kept} for record in lines("sglang_requests.jsonl")]
    with pytest.raises(InputError, match=r"when decoding started.*--enable-metrics"):
        read_router_log(save(tmp_path, records))
    records = [
        {key: value for key, value in record.items() if key != "dp_rank"} for record in lines("sglang_requests.jsonl")
    ]
    with pytest.raises(InputError, match=r"which worker served.*dp_rank"):
        read_router_log(save(tmp_path, records))


def test_spans_in_one_document_read_the_same(tmp_path):
    whole = {"resourceSpans": [document["resourceSpans"][0] for document in lines("vllm_spans.jsonl")]}
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    one, other = read_router_log(path), read_router_log(LOGS / "vllm_spans.jsonl")
    np.testing.assert_array_equal(one.finish, other.finish)
    np.testing.assert_array_equal(one.worker, other.worker)


def test_spans_around_and_beside_requests_are_counted(tmp_path):
    documents = lines("vllm_spans.jsonl")
    spans = documents[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    gateway = copy.deepcopy(spans[0]) | {"spanId": "aa"}
    middle = {
        "traceId": spans[0]["traceId"],
        "spanId": "bb",
        "parentSpanId": "aa",
        "name": "POST",
        "startTimeUnixNano": "1",
    }
    spans[0]["parentSpanId"] = "bb"
    spans += [gateway, middle]
    log = read_router_log(save(tmp_path, documents))
    assert len(log) == 48
    assert log.left_out == {"spans without tokens": 1, "spans around others": 1}


def test_the_writer_of_a_client_span_is_no_worker(tmp_path):
    documents = lines("gen_ai_spans.jsonl")
    assert read_router_log(save(tmp_path, documents)).workers == tuple(f"10.0.0.{worker}:8000" for worker in range(4))
    for document in documents:
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["attributes"][0]["value"]["stringValue"] = "balancer"
    assert any("load balancer" in note for note in read_router_log(save(tmp_path, documents)).notes)


def test_a_failed_span_is_cancelled(tmp_path):
    documents = lines("vllm_spans.jsonl")
    documents[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] = {"code": 2}
    log = read_router_log(save(tmp_path, documents))
    assert (log.ending == "cancelled").sum() == 1


def test_spans_without_tokens_are_refused(tmp_path):
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "POST", "attributes": []}]}]}]}
    with pytest.raises(InputError, match=r"none says its tokens.*gen_ai\.usage\.input_tokens"):
        read_router_log(save(tmp_path, [document]))


def test_spans_without_a_first_token_say_which_attribute_to_add(tmp_path):
    documents = lines("gen_ai_spans.jsonl")
    for document in documents:
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["attributes"] = [entry for entry in span["attributes"] if "first_chunk" not in entry["key"]]
    with pytest.raises(InputError, match=r"when decoding started.*gen_ai\.response\.time_to_first_chunk"):
        read_router_log(save(tmp_path, documents))


def test_older_names_of_sglang(tmp_path):
    older = {"prefill_finished_time": "prefill_finished_ts", "request_finished_ts": "decode_finished_ts"}
    records = [{older.get(k, k): v for k, v in record.items()} for record in lines("sglang_requests.jsonl")]
    for record in records:
        record["response_sent_to_client_ts"] = record["decode_finished_ts"] + 0.01
    one = read_router_log(save(tmp_path, [{"out": {"meta_info": record}} for record in records]))
    np.testing.assert_array_equal(one.finish, read_router_log(LOGS / "sglang_requests.jsonl").finish)
