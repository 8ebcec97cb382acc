"""What the metrics of a router say of its fleet, as numbers for a terminal: workers, barrier, pool, rates.

Two readings make rates; a counter that has fallen means that the router was started anew.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LINE = re.compile(r"^(lbopt_\w+)(?:\{([^}]*)\})?\s+(\S+)\s*$")
_LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]|\\.)*)"')


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
    values: dict[str, dict[tuple[str, str], float]] = {}
    single: dict[str, dict[str, float]] = {}
    counters: dict[str, float] = {}
    for name, labels, value in _samples(text):
        if name.endswith("_total"):
            counter = name.removeprefix("lbopt_").removesuffix("_total")
            counters[counter] = counters.get(counter, 0.0) + value
        elif "worker" in labels:
            values.setdefault(name, {})[labels.get("group", ""), labels["worker"]] = value
        elif len(labels) == 1:
            single.setdefault(name, {})[next(iter(labels.values()))] = value

    def of(name: str, key: tuple[str, str]) -> float:
        return values.get(name, {}).get(key, 0.0)

    workers = tuple(
        WorkerView(
            group=key[0],
            name=key[1],
            tokens=int(of("lbopt_worker_tokens", key)),
            running=int(of("lbopt_worker_running", key)),
            queued=int(of("lbopt_worker_queued", key)),
            up=up,
        )
        for key, up in values.get("lbopt_worker_up", {}).items()
    )
    return FleetView(
        at=at,
        workers=workers,
        imbalance=single.get("lbopt_imbalance_tokens", {}),
        pool=single.get("lbopt_pool_requests", {}),
        oldest=single.get("lbopt_pool_oldest_seconds", {}),
        counters=counters,
    )


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1], dict(_LABEL.findall(match[2] or "")), value
