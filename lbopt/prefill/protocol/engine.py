"""An instance that prefills in gated passes and carries over what a pass has no room for. The truth, not the view.

When a pass starts each unit takes the oldest tokens it has, up to its chunk and its number of requests; what arrives
during the pass waits. With a backlog the next pass starts by itself, at once: a batch that comes in answer to the end
of a pass waits one pass more on the device (`late_top_ups`), unless it takes no time at all (`World`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import numpy as np

from lbopt.prefill.ranges import Range, refuse_outside
from lbopt.prefill.setting import PassTime

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
