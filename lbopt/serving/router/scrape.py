"""What is read of an engine's metrics: requests running and waiting, and the share of its KV cache in use, by rank."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: What stands behind a name: labels, whose values may hold any sign, and a number. It never goes back over labels.
_REST = re.compile(rb'(?:\{((?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+)\}[ \t]*+|[ \t]++)(\S{1,64})(?!\S)')
_RANK = re.compile(rb'\b(?:engine|dp_rank)="(\d{1,5})"')

_RUNNING = (b"vllm:num_requests_running", b"sglang:num_running_reqs")
_WAITING = (b"vllm:num_requests_waiting", b"sglang:num_queue_reqs")
_SHARE = (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc", b"sglang:token_usage")
_NAMES = {
    **dict.fromkeys(_RUNNING, "running"),
    **dict.fromkeys(_WAITING, "waiting"),
    **dict.fromkeys(_SHARE, "share"),
}

#: Bytes of one scrape that are read, lines of one metric in it, and bytes of a line.
LARGEST_SCRAPE = 8 * 2**20
_MOST_LINES = 4096
_LONGEST_LINE = 4096


@dataclass(slots=True)
class Reading:
    """What an engine says of one rank; None where it does not say."""

    running: int | None = None
    waiting: int | None = None
    share: float | None = None


def read_metrics(data: bytes) -> dict[int | None, Reading]:
    """Return the readings by rank; None where the engine names none.

    Lines that are no numbers, negative, or of other metrics are left out: what cannot be read is not zero. The work is
    linear in the bytes, whatever they are, since only lines that begin with a name that is asked for are looked into.
    """
    found: dict[int | None, Reading] = {}
    for name, what in _NAMES.items():
        for line in _lines_of(name, data):
            read = _REST.match(line, len(name))
            value = math.nan if read is None else _number(read[2])
            if read is None or math.isnan(value):
                continue
            rank = _RANK.search(read[1] or b"")
            reading = found.setdefault(int(rank[1]) if rank else None, Reading())
            if what == "share":
                reading.share = value
            elif what == "running":
                reading.running = (reading.running or 0) + int(value)
            else:
                reading.waiting = (reading.waiting or 0) + int(value)
    return found


def _lines_of(name: bytes, data: bytes) -> Iterator[bytes]:
    """Yield the lines that begin with a name, no more than an engine has ranks."""
    at = 0 if data.startswith(name) else data.find(b"\n" + name) + 1 or -1
    for _ in range(_MOST_LINES):
        if at < 0:
            return
        yield data[at : at + _LONGEST_LINE].partition(b"\n")[0]
        at = data.find(b"\n" + name, at) + 1 or -1


def _number(text: bytes) -> float:
    """Return a number that counts something; NaN where the text is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value <= 2**53 else math.nan


def of_rank(readings: dict[int | None, Reading], rank: int | None) -> Reading:
    """Return the reading of a worker: that of its rank, or the only one there is."""
    if rank is not None and rank in readings:
        return readings[rank]
    if rank is None and len(readings) == 1:
        return next(iter(readings.values()))
    return readings.get(None, Reading())
