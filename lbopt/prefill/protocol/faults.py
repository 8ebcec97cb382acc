"""What goes wrong in a run: a plan of faults, written down or named in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np

from lbopt.exceptions import InputError
from lbopt.prefill.ranges import PROBABILITY, SECONDS, Range, refuse_outside
from lbopt.spec import unknown

Kind = Literal["event", "batch", "answer"]


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


#: Of timers that fire too early.
_NOT_ALWAYS = Range("0 or more, and less than 1, or no timer would ever be on time", high=1, below=True)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Faults of a run; without arguments there are none.

    Parameters
    ----------
    lose, lose_batch, lose_answer
        Probability that a pushed event, a poll or its answer is lost; a batch; a first token.
    duplicate, delay
        Probability that a message comes twice (arrivals too), or late.
    longest_delay
        s; a late message takes up to this much longer, so that others overtake it.
    slow, slow_factor
        Probability that a pass takes so many times as long; a factor above the watchdog makes false alarms.
    outlier
        Probability that a pass is reported as 3,600 s, or as a microsecond.
    spurious
        Probability that a watchdog rings a second time, at a random time before its deadline.
    early, late, timer_error
        Probability that a timer fires too early or too late, and by how much at most, s.
    mute
        Instances that work, but whose events and poll answers are lost.
    partitions
        Nothing goes to or from an instance: events are lost, batches and first tokens wait until the end.
    cut_loses
        Whether a partition loses batches and first tokens as well.
    crashes
        Instances that stop and forget everything, which a health check notices.
    restarts
        Likewise, but no health check notices: they come back in a new epoch.
    lapses
        Instances that forget everything at the start of the outage, and go on in the same epoch.
    clock
        (time, step), s: when the scheduler's clock steps, and by how much, forward or back.
    detection
        s from the start of a partition or crash until the health check fails, if it lasts so long; a crash is always
        noticed before its end.
    until
        s; after it nothing goes wrong by chance any more. Outages have ends of their own.
    """

    lose: Annotated[float, PROBABILITY] = 0.0
    lose_batch: Annotated[float, PROBABILITY] = 0.0
    lose_answer: Annotated[float, PROBABILITY] = 0.0
    duplicate: Annotated[float, PROBABILITY] = 0.0
    delay: Annotated[float, PROBABILITY] = 0.0
    longest_delay: Annotated[float, SECONDS] = 0.0
    slow: Annotated[float, PROBABILITY] = 0.0
    slow_factor: Annotated[float, Range("more than 0", above=True)] = 1.0
    outlier: Annotated[float, PROBABILITY] = 0.0
    spurious: Annotated[float, PROBABILITY] = 0.0
    early: Annotated[float, _NOT_ALWAYS] = 0.0
    late: Annotated[float, PROBABILITY] = 0.0
    timer_error: Annotated[float, SECONDS] = 0.0
    mute: tuple[Outage, ...] = ()
    partitions: tuple[Outage, ...] = ()
    cut_loses: bool = False
    crashes: tuple[Outage, ...] = ()
    restarts: tuple[Outage, ...] = ()
    lapses: tuple[Outage, ...] = ()
    clock: tuple[tuple[float, float], ...] = ()
    detection: Annotated[float, SECONDS] = 1.0
    until: float = math.inf

    def __post_init__(self) -> None:
        refuse_outside(self)
        if not all(math.isfinite(value) for step in self.clock for value in step):
            raise InputError(f"clock is {self.clock}; expected finite times and steps")

    @property
    def outages(self) -> tuple[Outage, ...]:
        """All that happens to instances."""
        return (*self.mute, *self.partitions, *self.crashes, *self.restarts, *self.lapses)

    @property
    def over(self) -> float:
        """When all faults are over, s."""
        return max([self.until, *(o.end for o in self.outages), *(time for time, _ in self.clock)])

    def reading(self, time: float) -> float:
        """Return what the scheduler's clock shows at a time, s."""
        return time + sum(step for at, step in self.clock if at <= time)

    def happens(self, chance: float, rng: np.random.Generator, now: float) -> bool:
        """Draw whether something of probability `chance` goes wrong at `now` s."""
        return chance > 0 and now < self.until and bool(rng.random() < chance)

    def off(self, rng: np.random.Generator, now: float, target: float) -> float:
        """Return when a timer fires that is set to `target` s, both in true time."""
        if self.happens(self.early, rng, now):
            return max(now, target - self.timer_error * rng.random())
        if self.happens(self.late, rng, now):
            return target + self.timer_error * rng.random()
        return max(now, target)

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

    def arrivals(self, rng: np.random.Generator, instance: int, now: float, latency: float, kind: Kind) -> list[float]:
        """Return when a message to or from an instance, sent at `now` s, comes in: never, once or twice.

        Parameters
        ----------
        rng
            Draws loss, delay and doubling.
        instance
            Number of the instance.
        now, latency
            Time of sending, and latency of the network, seconds.
        kind
            A batch, an answer (first token), or anything else (event), which a mute instance does not say.
        """
        if kind == "event":
            lost, cut = self.silent(instance, now), 0.0
            chance = self.lose
        else:
            cut = self.cut(instance, now) - now
            lost = cut > 0 and self.cut_loses
            chance = self.lose_batch if kind == "batch" else self.lose_answer
        if lost or self.happens(chance, rng, now):
            return []
        copies = 1 + self.happens(self.duplicate, rng, now)
        late = [self.longest_delay * rng.random() if self.happens(self.delay, rng, now) else 0.0 for _ in range(copies)]
        return [now + cut + latency + more for more in late]

    def _is_long(self, outage: Outage) -> bool:
        return outage.start + self.detection < outage.end


#: Faults that are numbers: chances, times in s, factors.
NUMBERS = tuple(field.name for field in fields(FaultPlan) if isinstance(field.default, float))
#: Faults of an instance from one time to another, and the field that has them.
OUTAGES = {
    "mute": "mute",
    "partition": "partitions",
    "crash": "crashes",
    "restart": "restarts",
    "lapse": "lapses",
}


def faults_of(words: Iterable[str]) -> FaultPlan:
    """Build the plan that the words name, ``NUMBER=VALUE`` or ``OUTAGE=INSTANCE@START-END``, times in s."""
    given: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in OUTAGES:
            field = OUTAGES[name]
            given[field] = (*given.get(field, ()), _outage(word, value))
        elif name in NUMBERS:
            if name in given:
                raise InputError(f"fault '{name}' is given twice")
            given[name] = _number(word, value)
        else:
            raise unknown("fault", name, (*NUMBERS, *OUTAGES))
    return FaultPlan(**given)


def _outage(word: str, value: str) -> Outage:
    instance, at, times = value.partition("@")
    start, dash, end = times.partition("-")
    if not (at and dash and instance.isdecimal()):
        raise InputError(f"fault '{word}' has no instance and times; expected e.g. crash=0@20-30, in s")
    return Outage(int(instance), _number(word, start), _number(word, end))


def _number(word: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        expected = "lose=0.1 or crash=0@20-30"
        raise InputError(f"fault '{word}': '{value}' is no number; expected e.g. {expected}") from None
