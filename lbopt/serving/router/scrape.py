"""What is read of an engine's metrics: requests running and waiting, and the share of its KV cache in use, by rank."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)", re.MULTILINE)
_RANK = re.compile(r'(?:engine|dp_rank)="(\d+)"')

_RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
_WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
_SHARE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_NAMES = {
    **dict.fromkeys(_RUNNING, "running"),
    **dict.fromkeys(_WAITING, "waiting"),
    **dict.fromkeys(_SHARE, "share"),
}

#: Bytes of one scrape that are read.
LARGEST_SCRAPE = 8 * 2**20


@dataclass(slots=True)
class Reading:
    """What an engine says of one rank; None where it does not say."""

    running: int | None = None
    waiting: int | None = None
    share: float | None = None


def read_metrics(text: str) -> dict[int | None, Reading]:
    """Return the readings by rank; None where the engine names none.

    Lines that are no numbers, negative, or of other metrics are left out: what cannot be read is not zero.
    """
    found: dict[int | None, Reading] = {}
    for name, labels, number in _LINE.findall(text):
        what = _NAMES.get(name)
        if what is None:
            continue
        try:
            value = float(number)
        except ValueError:
            continue
        if not math.isfinite(value) or value < 0 or value > 2**53:
            continue
        rank = _RANK.search(labels)
        reading = found.setdefault(int(rank[1]) if rank else None, Reading())
        if what == "share":
            reading.share = value
        elif what == "running":
            reading.running = (reading.running or 0) + int(value)
        else:
            reading.waiting = (reading.waiting or 0) + int(value)
    return found


def of_rank(readings: dict[int | None, Reading], rank: int | None) -> Reading:
    """Return the reading of a worker: that of its rank, or the only one there is."""
    if rank is not None and rank in readings:
        return readings[rank]
    if rank is None and len(readings) == 1:
        return next(iter(readings.values()))
    return readings.get(None, Reading())
