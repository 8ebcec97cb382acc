"""What /metrics of engines answer: Prometheus' text, the JSON of a query of it, and TensorRT-LLM's own JSON.

Names are those of vLLM (vllm/v1/metrics/loggers.py), of SGLang (python/sglang/srt/metrics/collector.py) and of
`lbopt serve`. A counter becomes a rate between two scrapes.

TensorRT-LLM answers with objects that have ``iterLatencyMS``, in a list; `trtllm-bench --iteration_log` writes one a
line. With attention data parallelism there is one for each rank and iteration. Counts and tokens are the rank's own;
time, queue and blocks of the KV cache are those of rank 0 (tensorrt_llm/executor/iteration_stats.py). So blocks
count for one rank alone, and the queue for none: it is before the ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import JsonFault, json_value, shown
from lbopt.files.prometheus import OF_RANKS, samples
from lbopt.instances.rank_log.lines import RankLine, clock_of, settled

#: What a metric says of a rank; a counter is marked by a dot.
NAMES = OF_RANKS | {
    "vllm:generation_tokens_total": ".made",
    "vllm:prompt_tokens_total": ".prefill",
    "vllm:num_preemptions_total": ".preempted",
    "sglang:num_used_tokens": "tokens",
    "sglang:gen_throughput": "made",
    "sglang:max_total_num_tokens": "capacity",
    "lbopt_worker_tokens": "tokens",
    "lbopt_worker_running": "running",
    "lbopt_worker_queued": "waiting",
}
#: Engines by how their metrics begin.
ENGINES = {"vllm:": "vLLM", "sglang:": "SGLang", "lbopt_worker_": "lbopt serve"}
_RANK = ("dp_rank", "engine", "worker", "rank", "engine_id")
_HOST = ("pod", "instance", "group", "hostname")
_CONFIG = "vllm:cache_config_info"
#: Lines of one file that are read: a scrape a second of 64 ranks for some hours.
_MOST = 4_000_000

SIGNATURE = b"(?m)^(?:# (?:HELP|TYPE) )?(?:%s)[a-z_]+[ {]" % "|".join(ENGINES).encode()
#: The name of a series of ranks, with its labels.
METRIC = re.compile(f"(?:{'|'.join(map(re.escape, NAMES))})(?:$|[{{])")
STATISTICS = rb'"iterLatencyMS"\s*:'
QUERY = rb'"resultType"\s*:\s*"(?:matrix|vector)"'


def read_text(data: bytes, seconds: float | None) -> Iterator[RankLine]:
    """Yield what a text of metrics says: one scrape, or several one after another.

    Parameters
    ----------
    seconds
        When it was scraped; None where that is not known.
    """
    first: dict[tuple[str, ...], str] = {}
    data = data.replace(b"\r\n", b"\n")
    for prefix in ENGINES:
        for sample in samples(data, prefix.encode(), _MOST):
            if sample.name in NAMES or sample.name == _CONFIG:
                yield from _said(sample.name, sample.by_label(), seconds, sample.value, first)


def read_query(document: Any, source: str) -> Iterator[RankLine]:
    """Yield what the answer of Prometheus' /api/v1/query or /api/v1/query_range says.

    Raises
    ------
    InputError
        Where no series of it is a metric of ranks, or a value is none.
    """
    answer = document.get("data", document) if isinstance(document, dict) else {}
    series = answer.get("result") if isinstance(answer, dict) else None
    names, first = set(), dict[tuple[str, ...], str]()
    for one in series if isinstance(series, list) else []:
        labels = one.get("metric") if isinstance(one, dict) else None
        if not isinstance(labels, dict):
            raise InputError(f"{source}: a result of the query is {shown(one)}; expected an object with 'metric'")
        names.add(str(labels.get("__name__", "(no name)")))
        values = one.get("values") or ([one["value"]] if "value" in one else [])
        for entry in values:
            try:
                when, value = float(entry[0]), float(entry[1])
            except (TypeError, ValueError, IndexError, KeyError):
                raise InputError(f"{source}: {shown(entry)} in a query; expected [seconds, value]") from None
            if math.isfinite(value):
                yield from _said(str(labels.get("__name__", "")), labels, when, value, first)
    if not names & {*NAMES, _CONFIG}:
        raise InputError(
            f"{source}: the query has {', '.join(sorted(names)) or 'no series'}; expected metrics of ranks by "
            'their names, such as {__name__=~"vllm:(num_requests_.*|kv_cache_usage_perc)"}'
        )


def _said(
    name: str, labels: Mapping[str, Any], seconds: float | None, value: float, first: dict[tuple[str, ...], str]
) -> Iterator[RankLine]:
    """Yield what one number says; of the processes of one rank (tensor parallel) only the first is heard.

    Parameters
    ----------
    first
        The process that was heard first, by rank (changed in place).
    """
    rank = next((str(labels[one]) for one in _RANK if labels.get(one) not in (None, "")), "")
    host = next((str(labels[one]) for one in _HOST if labels.get(one)), "")
    model = str(labels.get("model_name", ""))
    process = f"{labels.get('pp_rank', '')}/{labels.get('tp_rank', '')}"
    if first.setdefault((rank, host, model), process) != process:
        return
    quantity = NAMES.get(name)
    if name == _CONFIG:
        try:
            quantity, value = "capacity", float(labels["block_size"]) * float(labels["num_gpu_blocks"])
        except (KeyError, TypeError, ValueError):
            return
    if quantity is not None:
        yield RankLine(rank, host, seconds, {quantity: value}, model)


#: Quantities by their names in the statistics of a batch.
_OF_BATCH = {"contexts": "numContextRequests", "generations": "numGenRequests", "prefill": "numCtxTokens"}


def read_statistics(text: str, source: str) -> Iterator[RankLine]:
    """Yield what each object says.

    Raises
    ------
    InputError
        Where the text is neither one JSON value nor one on each line.
    """
    try:
        documents = [json_value(text)]
    except JsonFault:
        try:
            documents = [json_value(line) for line in text.splitlines() if line.strip()]
        except JsonFault as fault:
            raise InputError(f"{source}: {fault}; expected statistics of iterations, a list or one a line") from None
    rows = [row for one in documents for row in (one if isinstance(one, list) else [one]) if isinstance(row, dict)]
    single = len({row.get("attentionDpRank", 0) for row in rows}) == 1
    for row in rows:
        batch, cache = _part(row, "inflightBatchingStats"), _part(row, "kvCacheStats")
        values = {name: batch[key] for name, key in _OF_BATCH.items() if key in batch}
        if "numGenKvTokens" in batch:
            values["tokens"] = batch["numGenKvTokens"] + batch.get("numCtxKvTokens", 0.0)
        elif single and cache.get("maxNumBlocks"):
            values["share"] = cache.get("usedNumBlocks", 0.0) / cache["maxNumBlocks"]
        whole = _numbers(row)
        if "numActiveRequests" in whole and single:
            values.setdefault("running", whole["numActiveRequests"])
        values["step"] = whole.get("hostStepTimeMS", whole.get("iterLatencyMS", 0.0)) * 1e-3
        if len(values) > 1:
            rank = f"{whole.get('attentionDpRank', 0.0):.0f}"
            yield RankLine(rank, "", clock_of(str(row.get("timestamp", ""))), settled(values))


def _part(row: dict[str, Any], name: str) -> dict[str, float]:
    part = row.get(name)
    return _numbers(part) if isinstance(part, dict) else {}


def _numbers(part: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in part.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2**53
    }
