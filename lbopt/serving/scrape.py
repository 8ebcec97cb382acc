"""What engines and routers say: metrics in Prometheus' text, server-sent events, and counts of tokens.

Of an engine's metrics the requests and the share of the cache are read, by rank; of a router's, the fleet as numbers
for a terminal. Two readings of a router make rates; a counter that has fallen means that the router was started anew.
What cannot be read is not zero, and a count of tokens beyond any context is no count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lbopt.files.prometheus import OF_RANKS, samples

#: An empty line of a stream: two ends of lines, CR LF, LF or CR; a CR at the very end may be half of one.
EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r(?!\Z))")
_LINE_END = re.compile(rb"\r\n|\n|\r")


def data_of(event: bytes) -> bytes | None:
    """Return the data of an event of a stream (WHATWG HTML, section 9.2.6); None of a comment."""
    if event[:6] == b"data: " and b"\n" not in event and b"\r" not in event:
        return event[6:]
    lines = [line[5:].removeprefix(b" ") for line in _LINE_END.split(event) if line[:5] == b"data:"]
    return b"\n".join(lines) if lines else None


def stream_events(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the place behind each whole event of a stream, and its data; comments are passed over."""
    begin = 0
    for end in EVENT_END.finditer(stream):
        data, begin = data_of(stream[begin : end.start()]), end.end()
        if data is not None:
            yield begin, data


_RANK = re.compile(rb'\b(?:engine|dp_rank)="(\d{1,5})"')

#: Bytes of one scrape that are read, and lines of one metric in it: as many as an engine has ranks.
LARGEST_SCRAPE = 8 * 2**20
_MOST_LINES = 4096


@dataclass(slots=True)
class Reading:
    """What an engine says of one rank; None where it does not say."""

    running: int | None = None
    waiting: int | None = None
    share: float | None = None


def read_metrics(data: bytes) -> dict[int | None, Reading]:
    """Return the readings by rank; None where the engine names none."""
    found: dict[int | None, Reading] = {}
    for name, what in OF_RANKS.items():
        for sample in samples(data, name.encode(), _MOST_LINES):
            if sample.name != name:
                continue
            rank = _RANK.search(sample.labels)
            reading = found.setdefault(int(rank[1]) if rank else None, Reading())
            if what == "share":
                reading.share = sample.value
            else:
                setattr(reading, what, (getattr(reading, what) or 0) + int(sample.value))
    return found


def of_rank(readings: dict[int | None, Reading], rank: int | None) -> Reading:
    """Return the reading of a worker: that of its rank, or the only one there is."""
    if rank is not None and rank in readings:
        return readings[rank]
    if rank is None and len(readings) == 1:
        return next(iter(readings.values()))
    return readings.get(None, Reading())


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker."""

    group: str
    name: str
    tokens: int
    running: int
    queued: int
    up: float


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet at one moment.

    Parameters
    ----------
    at
        Time of the reading, s.
    workers
        By group and name.
    imbalance
        Tokens, by group.
    pool, oldest
        Requests that wait and seconds of the oldest, by model.
    counters
        Sums of every counter over its labels, by name without ``lbopt_`` and ``_total``.
    """

    at: float
    workers: tuple[WorkerView, ...] = ()
    imbalance: dict[str, float] = field(default_factory=dict)
    pool: dict[str, float] = field(default_factory=dict)
    oldest: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)

    def rate(self, counter: str, before: FleetView | None) -> float | None:
        """Return how much a counter grows a second; None where that is not known."""
        if before is None or self.at <= before.at:
            return None
        grown = self.counters.get(counter, 0.0) - before.counters.get(counter, 0.0)
        return grown / (self.at - before.at) if grown >= 0 else None

    def idle_share(self, before: FleetView | None) -> float | None:
        """Return the share of time idle at the barrier since the reading before; None while nothing ran."""
        busy, idle = self.rate("barrier_seconds", before), self.rate("barrier_idle_seconds", before)
        return idle / busy if busy and idle is not None else None


def read_view(text: str, at: float) -> FleetView:
    """Return the view that a text of metrics gives; lines that are no metrics of a router are left out."""
    of_workers: defaultdict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    single: defaultdict[str, dict[str, float]] = defaultdict(dict)
    counters: Counter[str] = Counter()
    for sample in samples(text.encode("utf-8", "replace"), b"lbopt_", len(text)):
        name, labels = sample.name.removeprefix("lbopt_"), sample.by_label()
        if name.endswith("_total"):
            counters[name.removesuffix("_total")] += sample.value  # type: ignore[assignment]
        elif "worker" in labels:
            of_workers[name][labels.get("group", ""), labels["worker"]] = sample.value
        elif len(labels) == 1:
            single[name][next(iter(labels.values()))] = sample.value
    load = of_workers["worker_tokens"], of_workers["worker_running"], of_workers["worker_queued"]
    workers = [
        WorkerView(*names, *(int(of.get(names, 0)) for of in load), up)  # type: ignore[call-arg]
        for names, up in of_workers["worker_up"].items()
    ]
    imbalance, pool, oldest = single["imbalance_tokens"], single["pool_requests"], single["pool_oldest_seconds"]
    return FleetView(at, tuple(workers), imbalance, pool, oldest, dict(counters))


#: Tokens of one prompt or answer. No context is longer, and sums over all slots of a fleet stay far inside int64.
MOST_TOKENS = 2**24
#: Sequences of one request that are counted; with more of them an engine refuses it.
MOST_SEQUENCES = 4096


class Usage(NamedTuple):
    """Tokens of the prompt and of the answer; None where the engine says none that can be."""

    prompt: int | None
    made: int | None


def count_of(value: Any) -> int | None:
    """Return a number of tokens, 0 to `MOST_TOKENS`; None where it is none."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


_COUNTED = (("prompt", "input"), ("completion", "output"))


def usage_of(answer: Any) -> Usage:
    """Return what an answer or an event, parsed, says under `usage`: as completions, responses or messages have it."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return Usage(None, None)
    prompt, made = (usage.get(f"{old}_tokens", usage.get(f"{new}_tokens")) for old, new in _COUNTED)
    return Usage(count_of(prompt), count_of(made))
