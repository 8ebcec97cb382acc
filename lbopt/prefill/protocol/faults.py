"""Instances, and what goes wrong with them and on the way.

What goes wrong in a run: a plan of faults, written down or named in words.

An instance that prefills in gated passes and carries over what a pass has no room for. The truth, not the view.

When a pass starts each unit takes the oldest tokens it has, up to its chunk and its number of requests; what arrives
during the pass waits. With a backlog the next pass starts by itself, at once: a batch that comes in answer to the end
of a pass waits one pass more on the device (`late_top_ups`), unless it takes no time at all (`World`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from lbopt.exceptions import InputError
from lbopt.prefill.setting import PROBABILITY, SECONDS, PassTime, Range, refuse_outside
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


#: Missing batches that are named.
REMEMBERED = 64


@dataclass(slots=True)
class Work:
    """What is left of one request on the device."""

    seq: int
    request: int
    tokens: int
    unit: int = 0


class PassLoad(NamedTuple):
    """What a pass computes: tokens in all, of its fullest unit, of the longest chunk; requests; tokens of each unit."""

    total: int
    fullest: int
    longest: int
    requests: int
    of_unit: tuple[int, ...]


@dataclass(slots=True)
class Engine:
    """Changed in place by the world.

    Parameters
    ----------
    chunk
        Most tokens of a unit in a pass.
    units, capacity
        Units, and most requests of one in a pass.
    ordered
        Whether a batch is taken only if its number is above all that were received; otherwise once each.
    epoch
        One more after every restart.
    life
        One more whenever it lost its memory: passes and connections of before are void.
    newest
        The newest batch received, or that need not be received any more; older ones are not taken.
    missing
        Batches that never came although newer ones did, the last few.
    """

    chunk: int
    units: int = 1
    capacity: int = 2**50
    ordered: bool = True
    epoch: int = 1
    life: int = 0
    up: bool = True
    work: list[Work] = field(default_factory=list)
    newest: int = 0
    fence: int = 0
    missing: tuple[int, ...] = ()
    passes: int = 0
    running: list[tuple[Work, int]] | None = None
    pass_seq: int = 0
    late_top_ups: int = 0
    done: Counter[int] = field(default_factory=Counter)
    seen: set[int] = field(default_factory=set)

    @property
    def oldest(self) -> int:
        """The oldest batch of which something is left."""
        return min((work.seq for work in self.work), default=self.newest + 1)

    def receive(self, seq: int, fence: int, epoch: int, requests: list[tuple[int, ...]]) -> bool:
        """Take a batch, unless it is a duplicate, overtaken or void; returns False if it is for another epoch.

        Parameters
        ----------
        seq, fence, epoch
            See `Send`.
        requests
            (request, tokens) of each, or (request, tokens, unit).
        """
        if epoch not in (0, self.epoch):
            return False
        if fence > self.fence:
            self.fence = fence
            taken = {id(work) for work, _ in self.running or ()}
            # What is in the running pass is worth its end: the first answer counts, from whichever instance.
            self.work = [work for work in self.work if work.seq > fence or id(work) in taken]
        known = max(self.newest, self.fence)
        if self.ordered:
            if seq <= known:
                return True
            self.missing = (*self.missing, *range(known + 1, seq))[-REMEMBERED:]
        elif seq in self.seen:
            return True
        else:
            self.seen.add(seq)
        self.newest = max(seq, self.newest)
        self.late_top_ups += self.running is not None
        self.work += [Work(seq, *request) for request in requests]
        return True

    def start(self, empty: bool = False) -> int | None:
        """Start a pass if there is work, or if it may be `empty`, and none runs; returns its tokens."""
        if self.running is not None or not (self.work or empty):
            return None
        self.running, self.pass_seq = self._next(), self.newest
        self.passes += 1
        return sum(tokens for _, tokens in self.running)

    def _next(self) -> list[tuple[Work, int]]:
        """Return what a pass takes that starts now."""
        taken: list[tuple[Work, int]] = []
        rooms, places = [self.chunk] * self.units, [self.capacity] * self.units
        open_units = self.units
        for work in self.work:
            unit = work.unit
            if rooms[unit] <= 0 or places[unit] <= 0:
                continue
            tokens = min(rooms[unit], work.tokens)
            taken.append((work, tokens))
            rooms[unit] -= tokens
            places[unit] -= 1
            if rooms[unit] <= 0 or places[unit] <= 0:
                open_units -= 1
                if not open_units:
                    break
        return taken

    def closing(self) -> int:
        """Return how many requests the pass would complete that starts now."""
        return sum(tokens == work.tokens for work, tokens in self._next())

    def load(self) -> PassLoad:
        """Return what the running pass computes."""
        of_unit, longest = [0] * self.units, 0
        for work, tokens in self.running or ():
            of_unit[work.unit] += tokens
            longest = max(longest, tokens)
        return PassLoad(sum(of_unit), max(of_unit), longest, len(self.running or ()), tuple(of_unit))

    def end(self) -> list[Work]:
        """End the running pass; returns the requests that are done with it."""
        assert self.running is not None
        for work, tokens in self.running:
            work.tokens -= tokens
        self.running = None
        finished = [work for work in self.work if work.tokens == 0]
        self.work = [work for work in self.work if work.tokens > 0]
        self.done.update(work.request for work in finished)
        return finished

    def remaining(self) -> int:
        """Return the backlog, tokens."""
        return sum(work.tokens for work in self.work)

    def backlog(self) -> tuple[int, ...]:
        """Return the backlog of each unit, tokens."""
        of_unit = [0] * self.units
        for work in self.work:
            of_unit[work.unit] += work.tokens
        return tuple(of_unit)

    def crash(self) -> None:
        """Stop, and forget everything; batches on their way to it are gone too."""
        self.up = False
        self.forget()
        self.epoch += 1

    def forget(self) -> None:
        """Forget everything, and go on under the same epoch."""
        self.work, self.running, self.fence, self.newest, self.missing = [], None, 0, 0, ()
        self.pass_seq = 0
        self.seen = set()
        self.life += 1


#: A limit that is never reached.
NO_LIMIT = 2**50


@dataclass(frozen=True, slots=True)
class Devices:
    """All instances are alike.

    Parameters
    ----------
    chunk, capacity
        Most tokens and requests of a unit in a pass; None = no limit.
    units
        Of an instance.
    pass_time
        The law of a pass, s.
    engine
        See `lbopt.prefill.setting.ENGINES`.
    phases
        s, until when each instance is busy with an empty pass at the start; empty = none is.
    """

    chunk: Annotated[int | None, Range("more than 0", above=True)] = None
    capacity: Annotated[int | None, Range("more than 0", above=True)] = None
    units: Annotated[int, Range("at least 1", low=1)] = 1
    pass_time: PassTime | Callable[[PassLoad], float] = field(default_factory=PassTime)
    engine: Literal["work-conserving", "back-to-back"] = "work-conserving"
    phases: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        refuse_outside(self)

    def built(self, ordered: bool = True) -> Engine:
        """Return an instance that has nothing to do."""
        return Engine(self.chunk or NO_LIMIT, self.units, self.capacity or NO_LIMIT, ordered)

    def seconds(self, load: PassLoad) -> float:
        """Return how long a pass takes, s."""
        law = self.pass_time
        if not isinstance(law, PassTime):
            return law(load)
        return law.seconds(load.fullest, load.longest, load.total / self.units)

    def passes(self, tokens: int) -> int:
        """Return how many passes a prompt takes at most that a unit computes alone."""
        return -(-tokens // (self.chunk or NO_LIMIT))


class Log:
    """Columns as of `lbopt.prefill.run`; `dispatched` and `began` are of the first time that it was so.

    Parameters
    ----------
    count
        Requests of the run.
    """

    def __init__(self, count: int) -> None:
        self.sent: Counter[int] = Counter()
        self.dispatched, self.began = np.full((2, count), np.nan)
        self.instance, self.unit = np.full((2, count), -1)
        self.passes, self.deferred = np.zeros((2, count), dtype=np.int64)
        self.rows: list[tuple[float, float, int, PassLoad]] = []

    def send(self, now: float, requests: Iterable[int]) -> None:
        """Note that a batch leaves the scheduler."""
        for request in requests:
            self.sent[request] += 1
            if self.sent[request] == 1:
                self.dispatched[request] = now

    def start(self, now: float, g: int, seconds: float, load: PassLoad, requests: Iterable[int]) -> None:
        """Note that a pass starts.

        Parameters
        ----------
        now, g, seconds
            When, where, and how long it will take, s.
        """
        self.rows.append((now, now + seconds, g, load))
        for request in requests:
            self.passes[request] += 1
            if np.isnan(self.began[request]):
                self.began[request] = now

    def end(self, engine: Engine, g: int) -> None:
        """Note who is done with the pass that ends."""
        for work, tokens in engine.running or ():
            if tokens == work.tokens:
                self.instance[work.request], self.unit[work.request] = g, work.unit
