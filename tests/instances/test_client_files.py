"""Exports of benchmarks, gateways and observability: which field is what, and which file has no worker."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances.readers import read
from lbopt.instances.router_log import read_router_log
from lbopt.instances.router_log.known import EXPORTS

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests" / "stored" / "logs"
CLIENTS = {"bench.json": "vllm bench serve", "profile_export.jsonl": "AIPerf", "benchmarks.json": "guidellm"}
PROMPTS = [348, 1834, 2103, 608, 674, 306, 363, 750]


def save(tmp_path, value, name="log.json"):
    path = tmp_path / name
    lines = value if isinstance(value, str) else json.dumps(value)
    path.write_bytes(gzip.compress(lines.encode()) if name.endswith("gz") else lines.encode())
    return path


def refused(path, match, **options):
    with pytest.raises(InputError, match=match):
        read_router_log(path, **options)


def test_a_file_of_a_client_is_a_trace_and_no_log():
    for name, format in CLIENTS.items():
        found = read(LOGS / name)
        assert found.format == format
        np.testing.assert_array_equal(found.trace.prompt, PROMPTS)
        np.testing.assert_allclose(found.trace.arrival[:3], [0, 0.155459, 0.181434], atol=2e-6)
        refused(LOGS / name, f"is a file of {format}: .* has no worker; .* lbopt gap ")


def test_a_named_worker_of_a_client_file_is_believed():
    log = read_router_log(LOGS / "profile_export.jsonl", columns={"worker": "metadata.worker_id"})
    np.testing.assert_allclose((log.start - log.arrival)[0], 9.1393e-3, atol=1e-6)  # ms, as the field beside it says


def test_the_call_is_the_arrival_and_the_first_token_the_start():
    for name, worker in (("spend.csv", "http://engine-0:8000/v1"), ("access.jsonl", "10.0.0.0:8000")):
        log = read_router_log(LOGS / name)
        assert log.workers[0] == worker
        first = np.argmin(log.arrival)
        np.testing.assert_allclose(log.start[first], 0.327, atol=1e-3)
        np.testing.assert_allclose(log.finish[first], 0.605, atol=1e-3)


def test_a_moment_between_start_and_end_is_asked_about(tmp_path):
    day = "2026-03-01T10:00:{:02}Z"
    head = "prompt_tokens,output_tokens,worker,started,streaming_since,finished\n"
    rows = [f"9,{50 + n},w{n % 2},{day.format(n)},{day.format(n + 1)},{day.format(n + 4 + n % 3)}\n" for n in range(9)]
    path = save(tmp_path, head + "".join(rows), "log.csv")
    refused(path, "'streaming_since' lies between it and 'finished'")
    log = read_router_log(path, columns={"arrival": "started", "first_token": "streaming_since"})
    np.testing.assert_allclose(log.start - log.arrival, 1.0)
    assert read_router_log(path, columns={"start": "started"}).start[0] == 0.0


def test_arrays_over_requests_are_rows_or_refused(tmp_path):
    bench = json.loads((LOGS / "bench.json").read_text())
    for change in (dict(reversed(bench.items())), {**bench, "percentiles": [1, 2, 3]}):
        np.testing.assert_array_equal(read(save(tmp_path, change, "log.json.gz")).trace.prompt, PROMPTS)
    np.testing.assert_array_equal(read(save(tmp_path, json.dumps(bench, indent=1))).trace.prompt, PROMPTS)
    for wrong in ("ttfts", "output_lens"):
        refused(save(tmp_path, {**bench, wrong: bench[wrong][:-1]}), "expected one per request in each")
    refused(save(tmp_path, {name: [] if isinstance(v, list) else v for name, v in bench.items()}), "no request")
    failed = {**bench, "errors": ["Traceback", *bench["errors"][1:]], "output_lens": [0, *bench["output_lens"][1:]]}
    found = read(save(tmp_path, failed))
    assert (len(found.trace), found.trace.left_out) == (7, {"cancelled": 1})
    no_times = {name: value for name, value in bench.items() if name not in ("start_times", "ttfts")}
    assert read(save(tmp_path, {**no_times, "ttfts": bench["ttfts"]})).trace.arrival is None


def test_runs_of_a_file_are_asked_for(tmp_path):
    report = json.loads((LOGS / "benchmarks.json").read_text())
    again = json.dumps(report["benchmarks"][0]).replace('"request_id": "', '"request_id": "again ')
    report["benchmarks"].append(json.loads(again))
    path = save(tmp_path, report)
    with pytest.raises(InputError, match=r"2 runs.*benchmarks\[0\] \(8 requests\).*rows=benchmarks\[0\]"):
        read(path)
    assert len(read(path, columns={"rows": "benchmarks[1]"}).trace) == 8
    assert len(read(path, columns={"rows": "*"}).trace) == 16
    lines = "\n".join([(LOGS / "bench.json").read_text()] * 2)
    assert len(read(save(tmp_path, lines), columns={"rows": "line[2]"}).trace) == 8


def test_requests_that_failed_are_left_out_and_counted(tmp_path):
    report = json.loads((LOGS / "benchmarks.json").read_text())
    requests = report["benchmarks"][0]["requests"]
    requests["errored"] = [{**requests["successful"][0], "output_tokens": None, "info": {"status": "errored"}}]
    found = read(save(tmp_path, report))
    assert (len(found.trace), found.trace.left_out) == (8, {"cancelled": 1})


def test_inference_perf_has_its_first_token_in_a_list(tmp_path):
    record = {"start_time": 10.0, "end_time": 11.0, "request": "x", "response": "y", "error": None}
    info = {"input_tokens": 5, "output_tokens": 3, "output_token_times": [10.25, 10.5, 11.0]}
    records = [{**record, "info": info, "pod": "a"}, {**record, "start_time": 10.2, "info": info, "pod": "b"}]
    log = read_router_log(save(tmp_path, records), columns={"worker": "pod"})
    np.testing.assert_allclose(log.start, [0.25, 0.25])
    assert read(save(tmp_path, records)).format == "inference-perf"


def test_langfuse_rows_that_are_no_generation_are_left_out(tmp_path):
    text = "2026-03-01 10:00:0{}.000000"
    row = {
        "id": "a", "trace_id": "t", "type": "GENERATION", "start_time": text.format(0), "end_time": text.format(4),
        "completion_start_time": text.format(1), "usage_details": {"input": 7, "output": 40}, "model": "m",
        "metadata": {"engine": "e0"},
    }  # fmt: skip
    span = {**row, "id": "b", "type": "SPAN", "usage_details": {}}
    path = save(tmp_path, "\n".join(map(json.dumps, [row, span])), "log.jsonl")
    log = read_router_log(path, columns={"worker": "metadata.engine"})
    assert (log.start[0], log.finish[0], log.prompt[0]) == (1.0, 4.0, 8)
    assert log.left_out == {"type is not GENERATION": 1}


def test_what_is_no_table_is_called_by_its_name(tmp_path):
    for text, match in (
        ("[2026-04-12 10:00:00 DP0 TP0] Decode batch, #running-req: 1\n", "a line of a log and no JSON"),
        ("# HELP vllm:num_requests_running Number\n", "Prometheus"),
        ("(APIServer pid=7) INFO 03-11 06:16:02 Engine 000: Running: 5 reqs, x\n", "a line of a log, and no header"),
        ('[{"a": 1}, {"b"', "may be truncated"),
    ):
        with pytest.raises(InputError, match=match):
            read(save(tmp_path, text))


def rows_of_the_manual():
    """The table of formats as the manual has it."""
    known = [one for one in EXPORTS if one.source]
    serves = ["none, it holds no tokens" if "prompt" in one.hints else "trace" if one.by_client else "log, trace"
              for one in known]  # fmt: skip
    rows = [(one.name, ", ".join(one.needs) or "spans", use) for one, use in zip(known, serves, strict=True)]
    return [
        f"| {name} | `{needs.replace('|', '` or `').replace(', ', '`, `')}` | {serves} | {one.source} |"
        for (name, needs, serves), one in zip(rows, known, strict=True)
    ]


def test_the_manual_has_every_format():
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    missing = [row for row in rows_of_the_manual() if row not in page]
    assert not missing, "\n".join(missing)
