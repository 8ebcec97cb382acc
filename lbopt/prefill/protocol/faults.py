"""What goes wrong in a run: a plan of faults, written down or drawn from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lbopt.exceptions import InputError


@dataclass(frozen=True, slots=True)
class Outage:
    """Something happens to an instance from `start` to `end`, s."""

    instance: int
    start: float
    end: float

    def __post_init__(self) -> None:
        if not (0 <= self.start <= self.end < math.inf):
            raise InputError(
                f"outage of instance {self.instance} from {self.start} s to {self.end} s; expected 0 <= start <= end"
            )

    def covers(self, instance: int, time: float) -> bool:
        """Return whether it concerns the instance at a time."""
        return self.instance == instance and self.start <= time < self.end


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Faults of a run; without arguments there are none.

    Parameters
    ----------
    lose, duplicate, delay
        Probability that a message is lost (pushed events and poll answers only), comes twice, or comes late.
    longest_delay
        s; a late message takes up to this much longer, so that others overtake it.
    slow, slow_factor
        Probability that a pass takes so many times as long; a factor above the watchdog makes false alarms.
    spurious
        Probability that a watchdog rings a second time, at a random time before its deadline.
    mute
        Instances that work, but whose events and poll answers are lost.
    partitions
        Nothing goes to or from an instance: events are lost, batches and first tokens wait until the end.
    crashes
        Instances that stop and forget everything.
    detection
        s from the start of a partition or crash until the health check fails, if it lasts so long; a crash is always
        noticed before its end.
    """

    lose: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0
    longest_delay: float = 0.0
    slow: float = 0.0
    slow_factor: float = 1.0
    spurious: float = 0.0
    mute: tuple[Outage, ...] = ()
    partitions: tuple[Outage, ...] = ()
    crashes: tuple[Outage, ...] = ()
    detection: float = 1.0

    def __post_init__(self) -> None:
        for name in ("lose", "duplicate", "delay", "slow", "spurious"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is {value}; expected a probability, 0 to 1")
        for name in ("longest_delay", "detection"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value} s; expected 0 or more")
        if not (math.isfinite(self.slow_factor) and self.slow_factor > 0):
            raise InputError(f"slow_factor is {self.slow_factor}; expected more than 0")

    def removals(self) -> tuple[Outage, ...]:
        """Return when health checks fail, an outage each from its detection to its end."""
        noticed = [Outage(o.instance, o.start + self.detection, o.end) for o in self.partitions if self._is_long(o)]
        crashed = [
            Outage(o.instance, min(o.start + self.detection, (o.start + o.end) / 2), o.end) for o in self.crashes
        ]
        return (*noticed, *crashed)

    def cut(self, instance: int, time: float) -> float:
        """Return until when nothing passes to or from the instance, s; `time` itself if something does."""
        # A partition may end inside another: go on until one is found open.
        while ends := [o.end for o in self.partitions if o.covers(instance, time)]:
            time = max(ends)
        return time

    def silent(self, instance: int, time: float) -> bool:
        """Return whether what the instance says at a time is lost."""
        return any(o.covers(instance, time) for o in (*self.mute, *self.partitions))

    def arrivals(self, rng: np.random.Generator, instance: int, now: float, latency: float, lossy: bool) -> list[float]:
        """Return when a message to or from an instance, sent at `now` s, comes in: never, once or twice.

        Parameters
        ----------
        rng
            Draws loss, delay and doubling.
        instance
            Number of the instance.
        now, latency
            Time of sending, and latency of the network, seconds.
        lossy
            Whether the message can be lost; one that cannot waits for the end of a partition.
        """
        if lossy and (self.silent(instance, now) or rng.random() < self.lose):
            return []
        leaves = self.cut(instance, now)
        copies = 1 + int(rng.random() < self.duplicate)
        is_late, how_late = rng.random((2, copies))
        return [
            float(leaves + latency + self.longest_delay * how_late[i] * (is_late[i] < self.delay))
            for i in range(copies)
        ]

    def _is_long(self, outage: Outage) -> bool:
        return outage.start + self.detection < outage.end


def random_plan(rng: np.random.Generator, num_instances: int, until: float, mean_pass: float) -> FaultPlan:
    """Draw faults that end by `until` s: each kind in about half of the plans, mild or wild.

    Parameters
    ----------
    rng
        Its only source of chance.
    num_instances
        Of the fleet.
    until
        s.
    mean_pass
        s, of a pass without faults: delays and outages are some of them long.
    """

    def chance(most: float) -> float:
        return float(rng.random() * most) if rng.random() < 0.5 else 0.0

    def outages() -> tuple[Outage, ...]:
        if rng.random() < 0.5:
            return ()
        drawn = []
        for _ in range(int(rng.integers(1, 4))):
            start = float(rng.random() * 0.8 * until)
            end = min(until, start + float(rng.exponential(6 * mean_pass)))
            # One time in four it takes the whole fleet.
            hit = range(num_instances) if rng.random() < 0.25 else (int(rng.integers(num_instances)),)
            drawn += [Outage(g, start, end) for g in hit]
        return tuple(drawn)

    return FaultPlan(
        lose=1.0 if rng.random() < 0.03 else chance(0.6),
        duplicate=chance(0.6),
        delay=chance(0.8),
        longest_delay=float(rng.choice([0.1, 1.0, 8.0])) * mean_pass,
        slow=chance(0.3),
        slow_factor=float(rng.choice([0.2, 3.0, 7.0, 20.0])),
        spurious=chance(0.5),
        mute=outages(),
        partitions=outages(),
        crashes=outages(),
        detection=float(rng.choice([0.0, 1.0, 4.0])) * mean_pass,
    )
