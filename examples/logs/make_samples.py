"""Write the sample logs of this folder: `python examples/logs/make_samples.py`.

All of it is drawn, nothing is measured. Every file holds the same 48 requests on four workers, so that each shape
reads back to the same log.
"""

import csv
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
EPOCH = 1_735_689_600.0  # 2025-01-01
SEED = 20_250_101


def draw(count=48, workers=4):
    """Return arrivals, waits, times to the first token, prompts, outputs (first token counted) and workers."""
    rng = np.random.default_rng(SEED)
    prompt = rng.integers(60, 4000, count)
    output = rng.integers(20, 400, count)
    arrival = np.round(np.cumsum(rng.exponential(0.4, count)), 6)
    wait = np.round(rng.exponential(0.05, count), 6)
    ttft = np.round(wait + 0.02 + prompt * 4e-5, 6)
    finish = np.round(arrival + ttft + (output - 1) * rng.uniform(0.018, 0.030, count), 6)
    return arrival, wait, ttft, finish, prompt, output, rng.integers(0, workers, count)


def nanoseconds(seconds):
    return str(round((EPOCH + seconds) * 1e6) * 1000)


def router_csv(path, data):
    arrival, _, ttft, finish, prompt, output, worker = data
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(
            [
                "request_id",
                "worker",
                "arrival_s",
                "first_token_s",
                "finish_s",
                "prompt_tokens",
                "output_tokens",
                "status",
            ]
        )
        for i in range(arrival.size):
            row = [
                f"r{i:03}",
                f"pod-{worker[i]}",
                arrival[i],
                round(arrival[i] + ttft[i], 6),
                finish[i],
                prompt[i],
                output[i],
            ]
            table.writerow([*row, "finished"])


def attribute(key, value):
    kind = "intValue" if isinstance(value, int) else "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def spans(path, data, service, name, attributes):
    """Write one document a line, as the file exporter of the OpenTelemetry Collector does: one a worker."""
    arrival, _, _, finish, _, _, worker = data
    client = service == "gateway"
    with path.open("w", encoding="utf-8") as stream:
        for one in sorted(set(worker.tolist())):
            resource = [
                attribute("service.name", service),
                attribute("service.instance.id", "one" if client else f"engine-{one}"),
            ]
            found = [
                {
                    "traceId": f"{i:032x}",
                    "spanId": f"{i + 1:016x}",
                    "name": name,
                    "kind": 3 if client else 2,
                    "startTimeUnixNano": nanoseconds(arrival[i]),
                    "endTimeUnixNano": nanoseconds(finish[i]),
                    "attributes": [attribute(*pair) for pair in attributes(i, data).items()],
                    "status": {},
                }
                for i in np.flatnonzero(worker == one).tolist()
            ]
            document = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": found}]}]}
            stream.write(json.dumps(document) + "\n")


def vllm(i, data):
    arrival, wait, ttft, finish, prompt, output, _ = data
    return {
        "gen_ai.request.id": f"cmpl-{i}",
        "gen_ai.request.max_tokens": 512,
        "gen_ai.usage.prompt_tokens": int(prompt[i]),
        "gen_ai.usage.completion_tokens": int(output[i]),
        "gen_ai.latency.time_in_queue": float(wait[i]),
        "gen_ai.latency.time_to_first_token": float(ttft[i]),
        "gen_ai.latency.e2e": round(float(finish[i] - arrival[i]), 6),
    }


def conventions(i, data):
    _, _, ttft, _, prompt, output, worker = data
    return {
        "server.address": f"10.0.0.{worker[i]}",
        "server.port": 8000,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "a-model",
        "gen_ai.response.id": f"chat-{i}",
        "gen_ai.usage.input_tokens": int(prompt[i]),
        "gen_ai.usage.output_tokens": int(output[i]),
        "gen_ai.response.time_to_first_chunk": float(ttft[i]),
    }


def sglang(path, data):
    """Write what a server with --enable-metrics and --export-metrics-to-file writes a request, in short."""
    arrival, wait, ttft, finish, prompt, output, worker = data
    with path.open("w", encoding="utf-8") as stream:
        for i in np.argsort(finish).tolist():
            record = {
                "request_parameters": json.dumps({"stream": True}),
                "id": f"{i:032x}",
                "finish_reason": {"type": "length", "length": int(output[i])}
                if i % 3
                else {"type": "stop", "matched": 2},
                "prompt_tokens": int(prompt[i]),
                "weight_version": "default",
                "completion_tokens": int(output[i]),
                "cached_tokens": int(prompt[i]) // 64 * 16,
                "dp_rank": int(worker[i]),
                "request_received_ts": round(EPOCH + arrival[i], 6),
                "forward_entry_time": round(EPOCH + arrival[i] + wait[i], 6),
                "prefill_finished_time": round(EPOCH + arrival[i] + ttft[i], 6),
                "queue_time": float(wait[i]),
                "request_finished_ts": round(EPOCH + finish[i], 6),
                "e2e_latency": round(float(finish[i] - arrival[i]), 6),
            }
            stream.write(json.dumps(record) + "\n")


def main(folder=HERE):
    data = draw()
    router_csv(folder / "router.csv", data)
    spans(folder / "vllm_spans.jsonl", data, "vllm", "llm_request", vllm)
    spans(folder / "gen_ai_spans.jsonl", data, "gateway", "chat a-model", conventions)
    sglang(folder / "sglang_requests.jsonl", data)


if __name__ == "__main__":
    main()
