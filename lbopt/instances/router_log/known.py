"""The exports that are known by their fields: what each of their columns is, in which unit, and what it is not.

A name alone is not enough: `startTime` is the call in one export and the start of decoding in another, `worker_id` an
engine in one and a process of the load generator in the other. So a format is known by several fields that must be
there and by fields that must not; then its entry says which column holds which quantity, and no name is guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from lbopt.instances.router_log.cells import COUNT, FIRST, LIST, SUM, Table

_ENGINE_INSTANCE = "; give each engine its name, OTEL_RESOURCE_ATTRIBUTES=service.instance.id=NAME, or add an attribute"

_OF_SPANS = {
    "worker": f"{_ENGINE_INSTANCE} worker; the span of a client says it in server.address",
    "start": "; the attribute gen_ai.response.time_to_first_chunk says it for answers that stream",
}

#: What ends an error about a file that a client of the fleet wrote.
NO_WORKER = (
    "it was written by the client, which does not know which worker served a request, so that it has no worker; which "
    "rule would have served these requests best says"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One format of logs.

    Parameters
    ----------
    name
        What it is called.
    needs
        Fields that must be there: columns, or names beside the rows; "a|b" is one of two.
    lacks
        Fields that must not be there.
    spans
        Whether it is of spans; otherwise of rows.
    reads
        Columns by quantity, "a|b" in order of preference, "*" for any letters: counts of several columns are added;
        None of a quantity that the format does not have, whatever other columns are called. Quantities that are not
        here are recognised by names.
    units
        Units of times by quantity, where names do not say them.
    only
        A column, the pattern that it has in rows that are requests, and why others are none; None where all are.
    by_client
        Whether the client wrote it, so that it holds no worker.
    of_gateway
        Whether a gateway wrote a row for every call, those that are none of a model among them: rows without tokens.
    caveat
        A column of the start of decoding, and a note about what it says instead.
    hints
        By quantity, what to add to the error where no column holds it.
    source
        Where its fields are defined.
    """

    name: str
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    spans: bool = False
    reads: Mapping[str, str | None] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, str, str] | None = None
    by_client: bool = False
    of_gateway: bool = False
    caveat: tuple[str, str] | None = None
    hints: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def fits(self, table: Table) -> bool:
        """Tell whether a table has the signature."""
        if self.spans != (table.kind == "spans"):
            return False
        return all(_has(table, names) for names in self.needs) and not any(_has(table, one) for one in self.lacks)


def _has(table: Table, names: str) -> bool:
    return bool(columns_in(table, names)) or not table.around.isdisjoint(names.split("|"))


def columns_in(table: Table, names: str, fits: Callable[[str], bool] = lambda _: True) -> tuple[str, ...]:
    """Return the first column that is called like one of several names, or ends so after a dot; none where none is.

    Parameters
    ----------
    names
        The names, with "|" between; one with "*" is a pattern, and stands for all columns that match it.
    fits
        Tells of a column whether it can be meant.
    """
    for name in names.split("|"):
        ends = (
            [name] if name in table.columns else [one for one in table.columns if fnmatchcase(f".{one}", f"*.{name}")]
        )
        if (len(ends) == 1 or "*" in name) and (meant := [one for one in ends if fits(one)]):
            return tuple(meant)
    return ()


#: A format that says some moments of a request has no others, whatever its columns are called.
_NO_OTHER_MOMENT: dict[str, str | None] = dict.fromkeys(("first_token", "start", "ttft", "finish", "e2e", "queue"))
#: Nor does what a client wrote have a worker.
_OF_CLIENT = _NO_OTHER_MOMENT | {"worker": None}

_BENCH = _OF_CLIENT | {
    "prompt": "input_lens",
    "output": "output_lens",
    "arrival": "start_times",
    "ttft": "ttfts",
    "e2e": "latencies|e2els",
    "decode": f"itls{SUM}",
    "error": "errors",
}
_BENCH_UNITS = {"arrival": "s", "ttft": "s", "e2e": "s", "decode": "s"}

#: What ends an error about an access log without tokens.
NO_TOKENS = (
    "an access log without token counts cannot be audited: add them to its format, such as "
    "input_tokens=%DYNAMIC_METADATA(io.envoy.ai_gateway:llm_input_token)% and output_tokens=..., or name columns, "
    "--column prompt=NAME and output=NAME"
)

#: The first that fits is taken; the last fits every table.
EXPORTS = (
    Export(
        name="vLLM",
        needs=("gen_ai.latency.time_in_queue",),
        spans=True,
        reads={"ttft": "gen_ai.latency.time_to_first_token", "queue": "gen_ai.latency.time_in_queue"},
        units={"ttft": "s", "queue": "s"},
        hints={
            "worker": f"{_ENGINE_INSTANCE} dp_rank",
            "start": "; the attribute gen_ai.latency.time_to_first_token says it",
        },
        source="vllm-project/vllm, vllm/tracing",
    ),
    Export(
        name="Langfuse",
        needs=("usage.prompt_tokens", "level"),
        spans=True,
        hints={
            "worker": "; write it into the metadata of a generation, and name it: --column worker=metadata.NAME",
            "start": "; completionStartTime says it, which the SDK sets for answers that stream",
        },
    ),
    Export(
        name="spans",
        needs=("gen_ai.response.time_to_first_chunk",),
        spans=True,
        reads={"ttft": "gen_ai.response.time_to_first_chunk"},
        units={"ttft": "s"},
        hints={"worker": _OF_SPANS["worker"]},
        source="OpenTelemetry semantic conventions for generative AI",
    ),
    Export(
        name="spans",
        spans=True,
        hints=_OF_SPANS,
        source="OpenTelemetry semantic conventions for generative AI",
    ),
    Export(
        name="SGLang bench_serving",
        needs=("input_lens", "output_lens", "ttfts", "sharegpt_context_len|total_output_tokens_retokenized"),
        reads=_BENCH,
        units=_BENCH_UNITS,
        by_client=True,
        hints={"arrival": "; bench_serving writes start_times with --num-processes alone; else give --arrivals closed"},
        source="sgl-project/sglang, python/sglang/bench_serving.py, --output-details",
    ),
    Export(
        name="vllm bench serve",
        needs=("input_lens", "output_lens", "ttfts|latencies|itls" + COUNT),
        reads=_BENCH,
        units=_BENCH_UNITS,
        by_client=True,
        hints={"arrival": "; newer versions of vllm bench serve --save-detailed write start_times"},
        source="vllm-project/vllm, vllm/benchmarks/serve.py, --save-detailed",
    ),
    Export(
        name="vllm bench serve",
        needs=("total_input_tokens", "request_throughput", "mean_ttft_ms"),
        by_client=True,
        hints={
            "prompt": "; it holds averages of a run: run the benchmark with --save-detailed (SGLang: --output-details)"
        },
    ),
    Export(
        name="AIPerf",
        needs=("input_sequence_length.avg", "output_sequence_length.avg"),
        by_client=True,
        hints={"prompt": "; it holds averages of a run: read profile_export.jsonl of AIPerf, which stands beside it"},
    ),
    Export(
        name="AIPerf",
        needs=("metrics.input_sequence_length.value", "metadata.worker_id|metadata.record_processor_id"),
        reads=_OF_CLIENT
        | {
            "id": "metadata.x_request_id",
            "arrival": "metadata.request_start_ns|metadata.timestamp_ns",
            "prompt": "metrics.input_sequence_length.value",
            "output": "metrics.output_sequence_length.value|metrics.output_token_count.value",
            "ttft": "metrics.time_to_first_token.value",
            "finish": "metadata.request_end_ns",
            "e2e": "metrics.request_latency.value",
            "error": "error.type|error.code",
            "status": None,
        },
        by_client=True,
        source="ai-dynamo/aiperf, docs/tutorials/working-with-profile-exports.md",
    ),
    Export(
        name="guidellm",
        needs=("prompt_tokens", "output_tokens", "request_start_time", "request_end_time"),
        reads=_OF_CLIENT
        | {
            "id": "request_id",
            "arrival": "request_start_time",
            "prompt": "prompt_tokens",
            "output": "output_tokens",
            "ttft": "time_to_first_token_ms",
            "finish": "request_end_time",
            "status": f"info.status|{LIST}",
            "error": "info.error",
        },
        units={"arrival": "s", "finish": "s"},
        by_client=True,
        source="vllm-project/guidellm, src/guidellm/schemas/request_stats.py",
    ),
    Export(
        name="guidellm",
        needs=("prompt_tokens", "output_tokens", "start_time", "end_time", "first_token_time"),
        reads=_OF_CLIENT
        | {
            "id": "request_id",
            "arrival": "start_time",
            "prompt": "prompt_tokens",
            "output": "output_tokens",
            "first_token": "first_token_time",
            "finish": "end_time",
            "status": LIST,
            "error": "error",
        },
        units={"arrival": "s", "first_token": "s", "finish": "s"},
        by_client=True,
        source="vllm-project/guidellm v0.2 and v0.3, src/guidellm/benchmark/benchmark.py",
    ),
    Export(
        name="guidellm",
        needs=("prompt_token_count", "output_token_count", "start_time", "first_token_time"),
        reads=_OF_CLIENT
        | {
            "id": None,
            "arrival": "start_time",
            "prompt": "prompt_token_count",
            "output": "output_token_count",
            "ttft": "first_token_time",  # a duration, whatever it is called
            "finish": "end_time",
            "status": None,
            "error": "message",
        },
        units={"arrival": "s", "ttft": "s", "finish": "s"},
        by_client=True,
        source="vllm-project/guidellm v0.1, src/guidellm/core/result.py",
    ),
    Export(
        name="inference-perf",
        needs=("start_time", "end_time", "info.input_tokens|info.request_metrics.text.input_tokens"),
        reads=_OF_CLIENT
        | {
            "id": None,
            "arrival": "start_time",
            "prompt": "info.input_tokens|info.request_metrics.text.input_tokens",
            "output": "info.output_tokens|info.response_metrics.output_tokens",
            "first_token": f"info.output_token_times{FIRST}|info.response_metrics.output_token_times{FIRST}",
            "finish": "end_time",
            "status": None,
            "error": "error.error_type|error",
        },
        units={"arrival": "s", "first_token": "s", "finish": "s"},
        by_client=True,
        source="kubernetes-sigs/inference-perf, inference_perf/apis/base.py, per_request_lifecycle_metrics.json",
    ),
    Export(
        name="genai-perf",
        needs=("response_timestamps" + COUNT, "timestamp"),
        by_client=True,
        hints={"prompt": "; genai-perf keeps texts and no token counts: use AIPerf's profile_export.jsonl"},
        source="triton-inference-server/perf_analyzer, genai-perf/docs/files.md, profile_export.json",
    ),
    Export(
        name="LiteLLM spend log",
        needs=(
            "startTime",
            "endTime",
            "prompt_tokens",
            "completion_tokens",
            "call_type|spend|api_base|completionStartTime",
        ),
        lacks=("traceId", "observationId"),
        reads=_NO_OTHER_MOMENT
        | {
            "id": "request_id",
            "arrival": "startTime",
            "prompt": "prompt_tokens",
            "output": "completion_tokens",
            "first_token": "completionStartTime",
            "finish": "endTime",
            "worker": "api_base",
            "model": "model_group|model",
            "status": "status",
        },
        only=("cache_hit", "(?!true).*", "answered from LiteLLM's cache"),
        hints={
            "worker": "; api_base says it where every engine is a deployment of its own",
            "start": "; completionStartTime says it, which LiteLLM writes for answers that stream",
        },
        source="BerriAI/litellm, schema.prisma, LiteLLM_SpendLogs",
    ),
    Export(
        name="Langfuse",
        needs=(
            "startTime|start_time",
            "endTime|end_time",
            "traceId|trace_id",
            "completionStartTime|completion_start_time|type",
        ),
        lacks=("spend",),
        reads=_NO_OTHER_MOMENT
        | {
            "id": "id",
            "arrival": "startTime|start_time",
            "prompt": "usageDetails.*input*|usage_details.*input*|inputUsage|usage.*input*|promptTokens|inputTokens",
            "output": "usageDetails.*output*|usage_details.*output*|outputUsage|usage.*output*|completionTokens|"
            "outputTokens",
            "first_token": "completionStartTime|completion_start_time",
            "ttft": "timeToFirstToken|time_to_first_token",
            "finish": "endTime|end_time",
            "status": "level",
            "model": "model|provided_model_name",
        },
        units={"ttft": "s"},
        only=("type", "GENERATION", "type is not GENERATION"),
        hints={
            "worker": "; write it into the metadata of a generation, and name it: --column worker=metadata.NAME",
            "start": "; completionStartTime says it, which the SDK sets for answers that stream",
        },
        source="langfuse/langfuse, packages/shared/src/domain/observations.ts, exports as CSV and JSON",
    ),
    Export(
        name="Higress access log",
        needs=("input_token", "output_token", "start_time", "duration|llm_service_duration"),
        reads=_NO_OTHER_MOMENT
        | {
            "id": "request_id",
            "arrival": "start_time",
            "prompt": "input_token",
            "output": "output_token",
            "ttft": "llm_first_token_duration|response_duration",
            "e2e": "duration|llm_service_duration",
            "worker": "upstream_host|upstream_cluster",
            "status": "response_code",
        },
        units={"ttft": "ms", "e2e": "ms"},
        of_gateway=True,
        hints={
            "worker": "; add %UPSTREAM_HOST% to the format of the access log",
            "start": "; llm_first_token_duration says it, which ai-statistics writes for answers that stream",
        },
        source="alibaba/higress, plugins/wasm-go/extensions/ai-statistics/README.md",
    ),
    Export(
        name="kthena access log",
        needs=("duration_total", "timestamp", "selected_pod|backend_name|model_route|model_name|input_tokens"),
        reads={
            "id": "request_id",
            "arrival": "timestamp",
            "prompt": "input_tokens",
            "output": "output_tokens",
            "first_token": None,
            "start": None,
            "finish": None,
            "e2e": "duration_total",
            "queue": None,
            "worker": "selected_pod|backend_name",
            "status": "status_code",
            "model": "model_name",
        },
        units={"e2e": "ms"},
        of_gateway=True,
        hints={"start": "; kthena's router does not log the first token: read the engines' own spans or logs"},
        source="volcano-sh/kthena, pkg/kthena-router/accesslog/types.go",
    ),
    Export(
        name="Envoy access log",
        needs=("start_time", "duration", "response_code|response_flags|upstream_host|upstream_cluster"),
        reads={
            "id": "request_id",
            "arrival": "start_time",
            "start": None,
            "ttft": "ttft_ms|ttft|time_to_first_token_ms|first_token_ms|response_duration",
            "finish": None,
            "e2e": "duration",
            "queue": None,
            "worker": "upstream_host",
            "status": "response_code",
        },
        units={"ttft": "ms", "e2e": "ms"},
        of_gateway=True,
        caveat=(
            "response_duration",
            "the first byte of an answer stands for its first token; a server may send its headers earlier",
        ),
        hints={
            "worker": "; add %UPSTREAM_HOST% to the format of the access log",
            "start": "; add the time to the first byte to its format: response_duration=%RESPONSE_DURATION%",
        },
        source="envoyproxy/envoy, access log command operators",
    ),
    Export(
        name="SGLang",
        needs=("e2e_latency", "completion_tokens"),
        hints={
            "worker": "; newer servers write dp_rank into meta_info, else add a field worker as you collect the files",
            "start": "; start the server with --enable-metrics, which adds prefill_finished_time to meta_info",
            "arrival": "; start the server with --enable-metrics, which adds request_received_ts to meta_info",
        },
        source="sgl-project/sglang, meta_info of an answer, --enable-metrics",
    ),
    Export(
        name="ShareGPT",
        needs=("conversations" + COUNT + "|conversations",),
        hints={"prompt": "; conversations must be tokenised first"},
    ),
    Export(name="table"),
)


def export_of(table: Table) -> Export:
    """Return the first format of the table whose signature a log has."""
    return next(one for one in EXPORTS if one.fits(table))
