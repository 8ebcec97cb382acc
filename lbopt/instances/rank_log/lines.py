"""The log lines of engines, as a table: the signature by which each is known, and where its fields stand.

Fields are found one by one, by their names, because every version of an engine adds some and moves others. Sources:
vLLM (vllm/v1/metrics/loggers.py, LoggingStatLogger; v0: vllm/engine/metrics.py; iterations: vllm/v1/engine/core.py,
log_iteration_details, since 0.27 in loggers.py with the share of the KV cache), SGLang (scheduler_metrics_mixin.py,
log_prefill_stats and log_decode_stats; hybrid models have "full token usage" beside that of a window or of mamba
states), TensorRT-LLM (tensorrt_llm/_torch/pyexecutor/py_executor.py, print_iter_log).

What collectors put before a line (kubectl, docker, compose, journald, Ray), colours and progress bars do not matter.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: A field of a line: where it stands, and the factor to tokens, shares, requests, seconds.
Field = tuple[str, float]


@dataclass(slots=True)
class RankLine:
    """What one line or one scrape says of one rank.

    Parameters
    ----------
    rank, host
        The rank's number as it stands there, "" where there is none; the pod, container or address that wrote it.
    seconds
        Of any clock; None where the line has no time.
    values
        By quantity: tokens held, share of the KV cache, running, waiting, made (tokens a second), prefill (tokens),
        step (seconds), capacity (tokens of the KV cache).
    model
        The model that is served, where that is said.
    """

    rank: str
    host: str
    seconds: float | None
    values: dict[str, float]
    model: str = ""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """One kind of line.

    Parameters
    ----------
    title
        What tables call it.
    signature
        A line of this kind has it; `_CANDIDATE` must find it too.
    ranks
        Where the rank stands; the first that is found counts.
    fields
        By quantity.
    """

    title: str
    signature: re.Pattern[str]
    ranks: tuple[re.Pattern[str], ...]
    fields: dict[str, tuple[re.Pattern[str], float]] = field(default_factory=dict)


def _format(title: str, signature: str, ranks: tuple[str, ...], fields: dict[str, Field]) -> LineFormat:
    found = {name: (re.compile(pattern), factor) for name, (pattern, factor) in fields.items()}
    return LineFormat(title, re.compile(signature), tuple(map(re.compile, ranks)), found)


_NUMBER = r"(\d+(?:\.\d+)?)"
_VLLM_RANKS = (r"\bEngine (\d+):", r"\bEngineCore_(?:DP)?(\d+)\b", r"\bDP(\d+)\b")
_SGLANG_RANKS = (r"\bDP(\d+)\b",)

FORMATS = (
    _format(
        "vLLM, several engines in one line",
        r"\d+ Engines Aggregated: ",
        (),
        {},
    ),
    _format(
        "vLLM",
        r"Avg (?:prompt|prefill) throughput: \S+ tokens/s.{0,200}Running: \d+ reqs",
        _VLLM_RANKS,
        {
            "running": (r"Running: (\d+) reqs", 1),
            "waiting": (r"(?:Waiting|Pending): (\d+) reqs", 1),
            "share": (r"(?<!CPU )KV cache usage: " + _NUMBER + "%", 0.01),
            "made": (r"Avg generation throughput: " + _NUMBER, 1),
            "prefill_rate": (r"Avg (?:prompt|prefill) throughput: " + _NUMBER, 1),
            "preempted": (r"Preemptions: (\d+)", 1),
        },
    ),
    _format(
        "vLLM iteration",
        r"\bIteration\(\d+\): \d+ context requests, .{0,99}iteration elapsed time: ",
        _VLLM_RANKS,
        {
            "contexts": (r"(\d+) context requests", 1),
            "prefill": (r"(\d+) context tokens", 1),
            "generations": (r"(\d+) generation requests", 1),
            "share": (r"(?<!CPU )KV cache usage: " + _NUMBER + "%", 0.01),
            "step": (r"iteration elapsed time: " + _NUMBER + " ms", 1e-3),
        },
    ),
    _format(
        "SGLang decode",
        r"Decode batch\b.{0,60}#running-req: \d",
        _SGLANG_RANKS,
        {
            "running": (r"#running-req: (\d+)", 1),
            "tokens": (r"#(?:full )?token: (\d+)", 1),
            "share": (r", (?:full )?token usage: " + _NUMBER, 1),
            "waiting": (r"#queue-req: (\d+)", 1),
            "made": (r"gen throughput \(token/s\): " + _NUMBER, 1),
            "retracted": (r"#retracted-req: (\d+)", 1),
        },
    ),
    _format(
        "SGLang prefill",
        r"Prefill batch\b.{0,60}#new-token: \d",
        _SGLANG_RANKS,
        {
            "prefill": (r"#new-token: (\d+)", 1),
            "waiting": (r"#queue-req: (\d+)", 1),
        },
    ),
    _format(
        "TensorRT-LLM iteration",
        r"\biter = \d+, global_rank = \d+",
        (r"global_rank = (\d+)",),
        {
            "running": (r"num_scheduled_requests(?: =|:) (\d+)", 1),
            "active": (r"num_active = (\d+)", 1),
            "waiting": (r"num_unscheduled = (\d+)", 1),
            "share": (r"kv_cache_util = " + _NUMBER, 1),
            "tokens": (r"(?:cached_kv_len = |'cached_kv_tokens': )(\d+)", 1),
            "prefill": (r"'num_ctx_tokens': (\d+)", 1),
            "generating": (r"'num_generation_tokens': (\d+)", 1),
            "step": (r"host_step_time = " + _NUMBER + "ms", 1e-3),
            "step_s": (r"elapsed_time = " + _NUMBER + "s", 1),
        },
    ),
)

#: Lines that say how many tokens a rank's cache holds: vLLM's "GPU KV cache size", SGLang's "max_total_num_tokens".
_CAPACITY = re.compile(r"(?:KV cache size: ([\d,]+) tokens|max_total_num_tokens=(\d+))")
#: Lines that an engine writes once, when it starts.
_START = re.compile(
    r"vLLM API server version|server_args=ServerArgs\(|Initializing a V1 LLM engine|TensorRT-LLM version"
)
_RANKS_ASKED = re.compile(r"(?:data_parallel_size'?\"?[=:] ?|\bdp_size=|--(?:dp|data-parallel)-size[= ])(\d+)")
#: What tells a log of ranks from any other file.
SIGNATURE = re.compile("|".join(one.signature.pattern for one in FORMATS).encode())
#: Does any format, or a line of the three kinds above, begin here?
CANDIDATE = re.compile(
    SIGNATURE.pattern + rb"|KV cache size: |max_total_num_tokens=|vLLM API server version|server_args="
    rb"|TensorRT-LLM version|Initializing a V1|data_parallel_size|\bdp_size=|-parallel-size|--dp-size"
)

_COLOUR = re.compile(r"(?:\x1b|\\u001b|\\x1b|\^\[)\[[0-9;]*m")
_HOST = re.compile(
    r"^\[pod/([^\]\s]+)\]|^([\w.-]+)\s+\| |^[A-Z][a-z]{2} +\d+ [\d:]{8} (\S+) \S+?\[\d+\]:|\(\w+ pid=\d+, ip=([\d.]+)\)"
)
_MONTHS = {name: k for k, name in enumerate(calendar.month_abbr) if name}
_CLOCKS = (
    re.compile(r"(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T ](?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:[.,]\d+)?)"),
    re.compile(r"(?P<m>\d\d)[-/](?P<d>\d\d)[-/](?P<y>\d{4})[- ](?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:\.\d+)?)"),
    re.compile(r"\b(?P<m>\d\d)-(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:[.,]\d+)?)"),
    re.compile(r"^(?P<b>[A-Z][a-z]{2}) +(?P<d>\d+) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)"),
    re.compile(r"(?<![\d:])(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d(?:[.,]\d+)?)(?![\d:])"),
)
_SERVER = re.compile(r"\(A[pP][iI]Server_(\d+)\b")
#: A year with a 29th of February, for clocks that name none.
_NO_YEAR = 2000


def clock_of(text: str) -> float | None:
    """Return the seconds of the first time in a text, of the epoch in any zone; None where there is none."""
    for pattern in _CLOCKS:
        found = pattern.search(text)
        if found is None:
            continue
        part = found.groupdict()
        month = _MONTHS.get(part["b"], 0) if part.get("b") else int(part.get("m") or 1)
        day, hour, minute = int(part.get("d") or 1), int(part["H"]), int(part["M"])
        if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60):
            continue
        date = (int(part.get("y") or _NO_YEAR), month, day, hour, minute, 0)
        return calendar.timegm(date) + float(part["S"].replace(",", "."))
    return None


@dataclass(slots=True)
class Tally:
    """What a log holds beside the values.

    Parameters
    ----------
    used, unused
        Lines by format, and lines that were not used.
    starts, ranks_asked
        How often an engine started in it, and the ranks that its command asked for.
    servers
        Numbers of the API servers that wrote lines.
    """

    used: dict[str, int] = field(default_factory=dict)
    unused: int = 0
    starts: int = 0
    ranks_asked: int = 0
    servers: set[str] = field(default_factory=set)


def read_lines(data: bytes, tally: Tally) -> Iterator[RankLine]:
    """Yield what the lines of a log say; `tally` is counted up.

    A capacity that is said without a rank has the rank "*".
    """
    last: float | None = None
    for raw in data.replace(b"\r", b"\n").split(b"\n"):
        if CANDIDATE.search(raw) is None:
            tally.unused += bool(raw.strip())
            continue
        line = _COLOUR.sub("", raw.decode("utf-8", "replace"))
        asked = _RANKS_ASKED.search(line)
        tally.ranks_asked = max(tally.ranks_asked, int(asked[1]) if asked and len(asked[1]) < 6 else 0)
        tally.starts += _START.search(line) is not None
        kind = next((one for one in FORMATS if one.signature.search(line)), None)
        seconds = clock_of(line)
        if seconds is not None and last is not None and seconds < last - 180 * 86_400:
            seconds += 366 * 86_400  # the new year came, of a clock that names none
        last = seconds if seconds is not None else last
        host = _HOST.search(line)
        where = next((one for one in host.groups() if one), "") if host else ""
        if kind is None:
            held = _CAPACITY.search(line)
            if held is None:
                tally.unused += 1
                continue
            rank = next((found[1] for one in _VLLM_RANKS if (found := re.search(one, line))), "*")
            capacity = float((held[1] or held[2]).replace(",", ""))
            yield RankLine(str(int(rank)) if rank != "*" else rank, where, seconds, {"capacity": capacity})
            continue
        tally.used[kind.title] = tally.used.get(kind.title, 0) + 1
        tally.servers.update(_SERVER.findall(line))
        values = {
            name: float(found[1]) * factor
            for name, (pattern, factor) in kind.fields.items()
            if (found := pattern.search(line))
        }
        if not values:
            continue
        rank = next((found[1] for one in kind.ranks if (found := one.search(line))), "")
        yield RankLine(str(int(rank)) if rank else "", where, seconds, settled(values))


def settled(values: dict[str, float]) -> dict[str, float]:
    """Return the values with one name a quantity."""
    if "step_s" in values:
        values.setdefault("step", values.pop("step_s"))
    running = values.pop("active", None)
    if running is not None:  # requests on the rank; those that were scheduled are fewer, and may be dummies
        values["running"] = max(running - values.get("waiting", 0.0), 0.0)
    if "generations" in values:
        values["running"] = values.pop("generations") + values.pop("contexts", 0.0)
    generating = values.pop("generating", None)  # padded to the size of a CUDA graph
    if generating is not None:
        values.setdefault("running", generating)
    if values.get("step") and "running" in values:
        values["made"] = values["running"] / values["step"]  # each request makes its token, or as many as the others
    return values
