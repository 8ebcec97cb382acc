"""Metrics of engines by rank: Prometheus' text, scraped once or again and again, and the JSON of a query.

Names are those of vLLM (vllm/v1/metrics/loggers.py), of SGLang (python/sglang/srt/metrics/collector.py) and of
`lbopt serve`. A counter becomes a rate between two scrapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.files.prometheus import OF_RANKS, samples
from lbopt.instances.rank_log.lines import RankLine

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
_PREFIXES = (b"vllm:", b"sglang:", b"lbopt_worker_")
_RANK = ("dp_rank", "engine", "worker", "rank", "engine_id")
_HOST = ("pod", "instance", "group", "hostname")
_CONFIG = "vllm:cache_config_info"
#: Lines of one file that are read: a scrape a second of 64 ranks for some hours.
_MOST = 4_000_000

SIGNATURE = b"(?m)^(?:# (?:HELP|TYPE) )?(?:vllm:|sglang:|lbopt_worker_)[a-z_]+[ {]"
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
    for prefix in _PREFIXES:
        for sample in samples(data, prefix, _MOST):
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
