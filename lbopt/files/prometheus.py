"""Metrics in Prometheus' text: a name, labels and a number a line (prometheus.io, text-based format 0.0.4).

Lines are found by the beginning of their name, so that the work is linear in the bytes whatever they hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

#: A line: a name, labels, whose values may hold any sign, and a number. It never goes back over labels.
_SAMPLE = re.compile(rb'([\w:]++)(?:\{((?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+)\}[ \t]*+|[ \t]++)(\S{1,64})(?!\S)')
_LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]|\\.)*)"')

#: What a rank holds, by the names of vLLM and SGLang.
OF_RANKS = {
    "vllm:num_requests_running": "running",
    "sglang:num_running_reqs": "running",
    "vllm:num_requests_waiting": "waiting",
    "sglang:num_queue_reqs": "waiting",
    "vllm:kv_cache_usage_perc": "share",
    "vllm:gpu_cache_usage_perc": "share",
    "sglang:token_usage": "share",
}

#: Bytes of a line that are read.
_LONGEST_LINE = 4096


class Sample(NamedTuple):
    """A line of metrics: its name, its labels as they stand there, and its number."""

    name: str
    labels: bytes
    value: float

    def by_label(self) -> dict[str, str]:
        """Return the values of the labels."""
        return dict(_LABEL.findall(self.labels.decode("utf-8", "replace")))


def samples(data: bytes, prefix: bytes, most: int) -> Iterator[Sample]:
    """Yield the first samples whose names begin with a prefix.

    Lines that are no counts, no numbers or negative, are left out: what cannot be read is not zero. The work is linear
    in the bytes, whatever they are, since only lines that begin with the prefix are looked into.
    """
    at = 0 if data.startswith(prefix) else data.find(b"\n" + prefix) + 1 or -1
    for _ in range(most):
        if at < 0:
            return
        read = _SAMPLE.match(data[at : at + _LONGEST_LINE].partition(b"\n")[0])
        value = math.nan if read is None else _number(read[3])
        if read is not None and not math.isnan(value):
            yield Sample(read[1].decode(), read[2] or b"", value)
        at = data.find(b"\n" + prefix, at) + 1 or -1


def _number(text: bytes) -> float:
    """Return a number that counts something; NaN where the text is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value <= 2**53 else math.nan
