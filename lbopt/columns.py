"""How columns are called: the words and the unit that a name says, and the aliases of each quantity of a request.

Logs of routers, their joins with traces, and measurements that step times are fitted to are read by this one
recogniser. An alias is compared in its canonical form: lower case, without separators, units and words such as "time"
or "at" at its end. Of a dotted name the longest ending that is an alias counts, so that `gen_ai.usage.prompt_tokens` is
one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Set

from lbopt.exceptions import InputError

#: Seconds of each unit of time.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

UNITS = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "usecs", "micros", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nsecs", "nano", "nanos", "nanosecond", "nanoseconds"),
}
UNIT_OF = {word: unit for unit, words in UNITS.items() for word in words}
_CLOCK_WORDS = {"time", "times", "timestamp", "timestamps", "ts", "at", "unix", "epoch", "utc", "datetime", "date"}

# Of each quantity the aliases by how well they fit: names of an earlier group are taken before those of a later one.
_ALIASES: dict[str, tuple[str, ...]] = {
    "id": (
        "request id, req id, rid, request uuid, request identifier, gen ai request id",
        "id, uuid, response id, meta info id",
        "span trace id, trace id",
    ),
    "arrival": (
        "arrival, arrived, request arrival, request received, received, submitted, submit, enqueued, request start, "
        "arrive, span start",
        "created, timestamp, time, ts, date time",
    ),
    "start": (
        "decode start, decode started, decoding start, decoding started, decode begin",
        "start, started, begin, began, scheduled, dispatched, dispatch, admitted, admission, forward entry, "
        "service start, first scheduled",
    ),
    "first_token": (
        "first token, first token received, prefill finished, prefill finish, prefill end, prefill done, first chunk, "
        "event first token, event first chunk, event gen ai first token, completion start, first token iteration",
    ),
    "finish": (
        "finish, finished, end, ended, completed, complete, done, decode finished, decode end, request finished, "
        "request end, last token, span end",
        "completion, response sent to client, response sent, closed",
    ),
    "prompt": (
        "prompt tokens, input tokens, num prompt tokens, num input tokens, n prompt tokens, prompt token count, "
        "input token count, prompt len, prompt length, input len, input length, request tokens, context tokens, "
        "prefill tokens, num prefill tokens, tokens in, isl, prompt size, context length, prompt token, "
        "nr prompt tokens, input sequence length, token count prompt, input token",
        "prompt, input, prefill",
    ),
    "output": (
        "output tokens, completion tokens, generated tokens, generation tokens, response tokens, num output tokens, "
        "num generated tokens, num generation tokens, num completion tokens, decode tokens, num decode tokens, "
        "output len, output length, response length, tokens out, osl, output token count, completion token count, "
        "generated length, output size, output token, nr output tokens, output sequence length, "
        "token count completion",
        "output, generated",
    ),
    "worker": (
        "worker, worker id, worker name, worker rank, worker index, replica, replica id, replica name, dp rank, "
        "data parallel rank, routed dp rank, dp, dp worker, engine, engine id, engine index, engine idx, engine rank, "
        "instance, instance id, service instance id, pod, pod name, k8s pod name, server, server id, backend, "
        "backend id, upstream, upstream host, upstream addr, node, node id, node name, k8s node name, host, hostname, "
        "host name, gpu, gpu id, device, device id",
        "endpoint, server address, address, url, api base, target, destination, rank, service name",
    ),
    "cached": (
        "cached tokens, cached prompt tokens, num cached tokens, cache hit tokens, prefix hit tokens, "
        "cache read input tokens, cached input tokens, cached",
    ),
    "status": (
        "status, state, finish reason, finish reason type, finish reasons, finished reason, outcome, result, ending, "
        "stop reason, status code, http status, http status code, response code, span status",
    ),
    "error": ("error, error type, error message, error code, exception, failure reason",),
    "model": ("model, model name, response model, request model, served model name",),
    "adapter": ("adapter, adapter name, adapter id, lora, lora name, lora id, lora adapter",),
    "tenant": ("tenant, tenant id, tenant name, customer, customer id, organization, organization id, team, team id",),
    "group": ("barrier group, dp group, data parallel group",),
    "ttft": (
        "ttft, to first token, time to first token, time to first chunk, first token latency, latency first token, "
        "first token duration, llm first token duration",
    ),
    "queue": (
        "queue, queue duration, time in queue, queueing, queuing, queue latency, wait, waiting, wait duration, "
        "time waiting, time queued",
    ),
    "e2e": (
        "e2e, e2e latency, end to end latency, latency, duration, request latency, request duration, elapsed, "
        "total latency, total duration, response",
    ),
    "decode": ("decode, decode latency, decode duration, generation, time in model decode",),
    "tpot": ("tpot, time per output token, time per token, inter token latency, itl, mean tpot, avg tpot, mean itl",),
}

#: Single words that end many dotted names; they count where the words before them are those of a holder.
_GENERIC_WORDS = (
    "id start end status state result response request total target address model duration latency host node rank "
    "server time code done url device input output prompt instance engine finish created timestamp statuscode "
    "elapsed"
)
_HOLDER_WORDS = (
    "metainfo out usage record data attributes timings metrics stats outmetainfo requestmetrics request response "
    "genairequest genairesponse timing times usagedetails inputmetrics outputmetrics"
)

#: Words before an alias that make it another quantity: `usage.reasoning.output_tokens` are not the output.
_OTHERWISE = {"reasoning", "creation", "cache", "max", "min", "expected", "predicted", "estimated", "accepted"}
_OTHERWISE |= {"rejected", "audio", "image", "video", "client", "parent"}


def words_and_unit(
    name: str, units: Mapping[str, str] = UNIT_OF, beside: Set[str] = _CLOCK_WORDS
) -> tuple[list[str], str | None]:
    """Return the words of a name in lower case without those of its unit, and the unit that it says.

    Parameters
    ----------
    name
        A header: `finish_ms`, `Start [s]`, `endTimeUnixNano`.
    units
        Unit by its spelling; one of several words has "_" between them.
    beside
        Words that are left out at the end, too.
    """
    bare, unit = name.strip(), None
    if match := re.search(r"[\[(]\s*([a-zA-Zµμ]+)\s*[\])]\s*$", bare):
        unit = units.get(match[1].lower())
        bare = bare[: match.start()] if unit else bare
    words = [word.lower() for word in re.split(r"[^0-9a-zA-Zµμ]+|(?<=[a-z0-9])(?=[A-Z])", bare) if word]
    while len(words) > 1:
        ending = next((n for n in (3, 2, 1) if n < len(words) and "_".join(words[-n:]) in units), 0)
        if not ending and words[-1] not in beside:
            break
        unit = unit or units.get("_".join(words[len(words) - ending :]))
        del words[-max(ending, 1) :]
    return words, unit


def unit_in(name: str) -> str | None:
    """Return "s", "ms", "us" or "ns" where a name says it: `finish_ms`, `Start [s]`, `endTimeUnixNano`."""
    return words_and_unit(name)[1]


def canonical(name: str) -> str:
    """Return a name without what does not tell quantities apart: separators, unit, clock, and the plural of its end."""
    words, _ = words_and_unit(name)
    last = words.pop() if words else ""
    plural = len(last) > 3 and last.endswith("s") and not last.endswith("ss")
    singular = last.removesuffix("ies") + "y" if plural and last.endswith("ies") else last[: len(last) - plural]
    return "".join([*words, singular])


def _table() -> dict[str, tuple[str, int]]:
    table: dict[str, tuple[str, int]] = {}
    for quantity, groups in _ALIASES.items():
        for rank, group in enumerate(groups):
            for alias in group.split(","):
                table.setdefault(canonical(alias), (quantity, rank))
    return table


_BY_ALIAS = _table()
_GENERIC, _HOLDERS = ({canonical(word) for word in words.split()} for words in (_GENERIC_WORDS, _HOLDER_WORDS))
QUANTITIES = tuple(_ALIASES)


def quantity_of(name: str) -> tuple[str, int] | None:
    """Return the quantity that a column is called like, and how well (0 is best); None for any other name."""
    parts = re.split(r"[./]", name.removesuffix(".value"))
    for begin in range(len(parts)):
        alias = canonical(".".join(parts[begin:]))
        if alias in _BY_ALIAS:
            before = ".".join(parts[:begin])
            if begin and alias in _GENERIC and canonical(before) not in _HOLDERS:
                return None
            if _OTHERWISE & set(words_and_unit(before)[0]):
                return None
            return _BY_ALIAS[alias]
    return None


def column_of(quantity: str, names: Iterable[str], least: int) -> str | None:
    """Return the name that is called most like a quantity, the first of equal ones; None where none fits.

    Parameters
    ----------
    quantity
        One of `QUANTITIES`.
    least
        How well it must fit at least: 0 is best.
    """
    like = [(found[1], name) for name in names if (found := quantity_of(name)) and found[0] == quantity]
    rank, name = min(like, key=lambda one: one[0], default=(least + 1, None))
    return name if rank <= least else None


def number(where: str, cell: str, expected: str, most: float = math.inf) -> float:
    """Return the number of zero or more in a cell of measurements.

    Parameters
    ----------
    where
        File, line and column, to begin an error with.

    Raises
    ------
    InputError
        Where the cell is no number, or none in this range.
    """
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not 0 <= value <= most:
        raise InputError(f"{where} is '{cell.strip()[:40]}'; expected {expected}")
    return value
