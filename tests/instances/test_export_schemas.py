"""Exports as the code of their tools writes them: what is read of each, and what is left out."""

import csv
import io
import json

import pytest

from lbopt.exceptions import InputError
from lbopt.instances.readers import read
from lbopt.instances.router_log import read_router_log


def day(second):
    return f"2026-03-01T10:00:{second:06.3f}Z"


def sglang(**others):
    """What `sglang.bench_serving --output-details` appends, a line per run; the third request failed."""
    return {
        "tag": None, "backend": "sglang", "duration": 2.5, "completed": 3, "total_input_tokens": 100,
        "total_output_tokens": 19, "total_output_tokens_retokenized": 19, "request_throughput": 1.2,
        "mean_ttft_ms": 3.0, "input_lens": [10, 20, 30, 40], "output_lens": [5, 6, 0, 8], "ttfts": [0.1, 0.2, 0, 0.3],
        "itls": [[0.02] * 4, [0.02] * 5, [], [0.02] * 7], "generated_texts": ["a", "b", "", "d"],
        "errors": ["", "", "Traceback", ""],
    } | others  # fmt: skip


PROCESSES = {
    "successes": [True, True, False, True], "latencies": [0.2, 0.4, 0.1, 0.5], "errors": [None, None, "failed", None],
    "start_times": [1000.0, 1000.25, 1000.5, 1001.0], "workers": [{"worker": 0, "total_input_tokens": 60}] * 2,
}  # fmt: skip


def spend(place, **others):
    return {
        "request_id": f"r{place}", "call_type": "acompletion", "spend": 0.1, "prompt_tokens": 50 + place,
        "completion_tokens": 40, "startTime": day(place), "endTime": day(place + 3), "request_duration_ms": 3000,
        "completionStartTime": day(place + 0.5), "model": "m", "api_base": f"http://e{place % 2}:8000/v1",
        "metadata": {"usage_object": {"prompt_tokens": 9}, "status": "success"}, "cache_hit": "False",
        "status": "success", "messages": {}, "response": {},
    } | others  # fmt: skip


def observation(place, **others):
    usage = {"input": 20 + place, "input_cached_tokens": 30, "output": 40, "output_reasoning_tokens": 5, "total": 95}
    return {
        "id": f"o{place}", "traceId": f"t{place}", "type": "GENERATION", "startTime": day(place),
        "endTime": day(place + 3), "completionStartTime": day(place + 0.5), "latency": 3.0, "level": "DEFAULT",
        "model": "m", "input": "hello", "output": "x", "usageDetails": usage, "inputUsage": 50 + place,
        "outputUsage": 45, "metadata": {"engine": f"e{place % 2}"},
    } | others  # fmt: skip


def stored(row):
    """An observation as it is exported to a blob storage."""
    return {"".join("_" + one.lower() if one.isupper() else one for one in name): value for name, value in row.items()}


def table(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: json.dumps(cell) if isinstance(cell, dict) else cell for name, cell in row.items()}
                     for row in rows)  # fmt: skip
    return text.getvalue()


def guide(place, **others):
    return {
        "request_id": f"a{place}", "scheduler_info": {"worker_start": 100.0 + place, "process_id": place},
        "prompt": "t", "output": "t", "prompt_tokens": 50 + place, "output_tokens": 40, "start_time": 100.0 + place,
        "end_time": 103.0 + place, "first_token_time": 100.5 + place, "last_token_time": 103.0 + place,
    } | others  # fmt: skip


def first_guide(place):
    request = {"id": "x", "prompt": "p", "prompt_token_count": 32, "output_token_count": 32}
    return {
        "request": request, "prompt": "p", "prompt_token_count": 50 + place, "output": "o", "output_token_count": 40,
        "start_time": 100.0 + place, "end_time": 103.0 + place, "first_token_time": 0.5,
        "decode_times": {"data": [0.02] * 39},
    }  # fmt: skip


def lines(*rows):
    return "\n".join(map(json.dumps, rows)) + "\n"


FOUR = range(4)
REPORT = {
    "successful": [guide(n) for n in FOUR],
    "incomplete": [guide(5, output_tokens=3)],
    "errored": [guide(6, output_tokens=0, first_token_time=None, error="boom")],
    "total": None,
}
FIRST_REPORT = {
    "mode": "constant", "results": [first_guide(n) for n in FOUR],
    "errors": [{"request": first_guide(0)["request"], "message": "boom"}],
    "concurrencies": [{"time": 1.0, "completed": 1, "errored": 0}],
}  # fmt: skip

#: Text of a file, its format, prompts, outputs, seconds of arrival, and what is left out.
READ = {
    "bench.jsonl": (lines(sglang()), "SGLang bench_serving", [10, 20, 40], [5, 6, 8], None, {"cancelled": 1}),
    "bench_of_processes.jsonl": (
        lines(sglang(**PROCESSES)), "SGLang bench_serving", [10, 20, 40], [5, 6, 8], [0, 0.25, 1], {"cancelled": 1},
    ),
    "spend.json": (
        json.dumps([*map(spend, FOUR), spend(6, cache_hit="True"), spend(7, status="failure", completion_tokens=0)]),
        "LiteLLM spend log", [50, 51, 52, 53], [40] * 4, [*FOUR],
        {"answered from LiteLLM's cache": 1, "cancelled": 1},
    ),
    "observations.jsonl": (
        lines(*map(observation, FOUR), observation(5, level="ERROR"), observation(6, type="SPAN")),
        "Langfuse", [50, 51, 52, 53], [45] * 4, [*FOUR], {"type is not GENERATION": 1, "cancelled": 1},
    ),
    "blobs.jsonl": (
        lines(*(stored(observation(n)) for n in FOUR)), "Langfuse", [50, 51, 52, 53], [45] * 4, [*FOUR], {},
    ),
    "observations.csv": (
        table([observation(n) for n in FOUR]), "Langfuse", [50, 51, 52, 53], [45] * 4, [*FOUR], {},
    ),
    "guidellm_0.2.json": (
        json.dumps({"benchmarks": [{"start_time": 1.0, "requests": REPORT}]}),
        "guidellm", [50, 51, 52, 53], [40] * 4, [*FOUR], {"cancelled": 2},
    ),
    "guidellm_0.1.json": (
        json.dumps({"benchmarks": [FIRST_REPORT], "args": {}}),
        "guidellm", [50, 51, 52, 53], [40] * 4, [*FOUR], {"cancelled": 1},
    ),
}  # fmt: skip

CHUNKS = [{"response": "data: {}"}, {"response": "data: [DONE]"}]
PROFILE = {
    "service_kind": "openai",
    "experiments": [
        {
            "experiment": {"mode": "concurrency", "value": 10},
            "requests": [
                {"timestamp": n, "response_timestamps": [n + 3, n + 5], "response_outputs": CHUNKS} for n in FOUR
            ],
        }
    ],
}
AVERAGES = {name: {"unit": "tokens", "avg": 5.0} for name in ("input_sequence_length", "output_sequence_length")}
REFUSED = {
    "profile_export.json": (PROFILE, "genai-perf keeps texts and no token counts: use AIPerf's profile_export.jsonl"),
    "profile_export_aiperf.json": (AVERAGES, "averages of a run: read profile_export.jsonl"),
    "bench_averages.json": (
        {name: value for name, value in sglang().items() if not isinstance(value, list)},
        "averages of a run: run the benchmark with --save-detailed",
    ),
}


def test_what_the_code_of_a_tool_writes_is_read(tmp_path):
    for name, (text, format, prompts, outputs, arrivals, left_out) in READ.items():
        (tmp_path / name).write_text(text, newline="")
        found = read(tmp_path / name)
        trace = found.trace
        assert (found.format, trace.prompt.tolist(), trace.output.tolist()) == (format, prompts, outputs), name
        assert (None if trace.arrival is None else trace.arrival.tolist()) == arrivals, name
        assert trace.left_out == left_out, name


def test_files_without_tokens_say_which_file_has_them(tmp_path):
    for name, (document, match) in REFUSED.items():
        (tmp_path / name).write_text(json.dumps(document))
        with pytest.raises(InputError, match=match):
            read(tmp_path / name)


def test_an_answer_that_does_not_stream_has_no_first_token(tmp_path):
    """LiteLLM then writes the end of the answer as the start of its completion."""
    path = tmp_path / "spend.json"
    whole = [spend(n, completionStartTime=day(n + 3)) for n in range(4, 6)]
    path.write_text(json.dumps([*map(spend, FOUR), *whole]))
    log = read_router_log(path)
    assert (log.start - log.arrival).tolist() == [0.5] * 4
    assert log.left_out == {"no start of decoding": 2}
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match=r"when its decoding started .*completionStartTime says it"):
        read_router_log(path)


def test_a_line_that_stands_twice_is_one_request(tmp_path):
    path = tmp_path / "spend.jsonl"
    path.write_text(lines(*map(spend, FOUR), spend(2)))
    trace = read(path).trace
    assert (trace.prompt.tolist(), trace.left_out) == ([50, 51, 52, 53], {"doubled": 1})
    path.write_text(json.dumps({"benchmarks": [{"requests": REPORT["successful"] + [guide(2)]}]}))
    assert read(path).trace.left_out == {"doubled": 1}


def test_objects_in_cells_of_a_table_are_columns(tmp_path):
    """So that the worker may stand in the metadata of an export as CSV, as its error says."""
    path = tmp_path / "observations.csv"
    path.write_text(table([observation(n) for n in FOUR]), newline="")
    with pytest.raises(InputError, match=r"--column worker=metadata\.NAME"):
        read_router_log(path)
    log = read_router_log(path, columns={"worker": "metadata.engine"})
    assert (log.workers, log.prompt.tolist()) == (("e0", "e1"), [51, 52, 53, 54])
    path.write_text('prompt_tokens,output_tokens,note\n5,6,"{""a"": 1}"\n7,8,{broken\n')
    assert read(path).trace.prompt.tolist() == [5, 7]
    with pytest.raises(InputError, match=r"it serves as a trace: lbopt gap .* --fleet 8x64 --rule round-robin"):
        read_router_log(path)


def test_counts_of_several_columns_are_added(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("fresh,cached_part,out\n3,4,5\n6,,7\n")
    trace = read(path, columns={"prompt": "fresh+cached_part", "output": "out"}).trace
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([7, 6], [5, 7])
