"""Gated prefill passes from their definition: objects and lists, one moment after the other, all of it searched anew.

In every moment, in this order: passes end; instances become healthy or not; batches reach their instance; requests
arrive; the scheduler hands out batches; passes start. After every moment requests and tokens are counted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from naive.backfill import backfill


@dataclass
class Request:
    number: int
    arrival: float
    length: int
    cached: Sequence[Sequence[int]] | None
    state: str = "to come"  # refused, waiting, on the way, on device, finished
    instance: int = -1
    unit: int = -1
    tokens: int = 0  # to be computed on its unit
    left: int = 0
    dispatched: float = math.nan
    began: float = math.nan
    finished: float = math.nan
    passes: int = 0

    def cost(self, g: int, d: int) -> int:
        return self.length - (self.cached[g][d] if self.cached else 0)


@dataclass
class Instance:
    number: int
    units: int
    until: float  # end of the running pass, or of the time at the start in which it is busy with nobody
    running: bool = True
    measured: bool = False
    start: float = 0.0
    queues: list[list[Request]] = field(default_factory=list)
    inside: list[tuple[Request, int]] = field(default_factory=list)
    placed: int = 0
    free_since: float = 0.0
    answered: bool = True  # a pass has ended since the last batch reached it
    fullest: int = 0  # tokens of the fullest unit in the running pass
    begun: int = 0
    predicted: float = math.inf  # end of the running pass, as the scheduler believes
    closed: str = ""  # the pass to come gets nobody, nobody until one comes, who fits: "shut", "full", "ajar"
    batch: str = "over"  # the last one: on its way, in the first pass that it could be in, over

    def __post_init__(self) -> None:
        self.queues = [[] for _ in range(self.units)]


@dataclass
class Fleet:
    """One run; the rules are given in words."""

    arrival: Sequence[float]
    length: Sequence[int]
    uniforms: Sequence[float]
    phases: Sequence[float]
    units: int
    policy: str  # random, round-robin, jsq, jsq-tokens, pooled, spacing, tick, anticipating
    allocation: str  # round-robin, least-loaded, longest-first, backfill
    seconds: Callable[[list[int], int], float]  # of the units' tokens, and of the longest chunk
    chunk: float = math.inf
    capacity: float = math.inf
    latency: float = 0.0
    back_to_back: bool = False
    interval: float | None = None
    mean_pass: float = 1.0
    window: int = 0
    idle_bypass: bool = False
    queue_limit: float = math.inf
    topology: Sequence[tuple[float, int]] = ()
    hits: Sequence[Sequence[Sequence[int]]] | None = None
    to_the_freest: bool = False
    while_left_over: bool = False
    margin: float = 0.0
    share: float = 0.0  # of (mean pass / instances), between starts of passes
    error: float = 0.0
    deviations: Sequence[float] = (0.0,)
    split: float = 0.5

    def run(self) -> "Fleet":
        self.requests = [
            Request(i, self.arrival[i], self.length[i], self.hits[i] if self.hits else None)
            for i in range(len(self.arrival))
        ]
        self.instances = [Instance(g, self.units, phase) for g, phase in enumerate(self.phases)]
        self.healthy = len(self.instances)
        self.passes: list[tuple[float, int, float, tuple[int, ...], int, int]] = []
        self.computed = 0
        self.turn = 0
        self.target = 0
        self.last_dispatch = -math.inf
        self.measured: list[float] = []
        self.known: list[tuple[int, float, float]] = []  # fullest unit, seconds, seconds after the predicted end
        self.last_start = -math.inf
        self.period = self.interval if self.interval is not None else (self.mean_pass + self.latency) / self.healthy
        self.lattice, self.ticks_of_lattice = 0.0, 0
        self.ticks_waiting = 0
        self.look = math.inf
        self.changes = list(self.topology)
        while any(r.state not in ("finished", "refused") for r in self.requests):
            self.moment(self.next_moment())
            self.count()
        return self

    def next_moment(self) -> float:
        times = [r.arrival for r in self.requests if r.state == "to come"]
        times += [r.dispatched + self.latency for r in self.requests if r.state == "on the way"]
        times += [instance.until for instance in self.instances if instance.running]
        times += [at for at, _ in self.changes]
        times += [self.look]
        if self.policy == "tick":
            times.append(self.next_tick)
        return min(times)

    @property
    def next_tick(self) -> float:
        return self.lattice + self.ticks_of_lattice * self.period

    def moment(self, now: float) -> None:
        self.look = math.inf
        for instance in self.instances:
            if instance.running and instance.until == now:
                self.end(instance, now)
        while self.changes and self.changes[0][0] == now:
            self.healthy = self.changes.pop(0)[1]
            self.set_period()
        for r in self.requests:
            if r.state == "on the way" and r.dispatched + self.latency == now:
                self.reach(r)
        came = False
        for r in self.requests:
            if r.state == "to come" and r.arrival == now:
                came |= self.arrive(r, now)
        if self.policy == "anticipating":
            self.send_ahead(now, came)
        elif self.policy in ("pooled", "spacing", "tick"):
            self.schedule(now, came)
        for instance in self.instances:
            if not instance.running and (self.back_to_back or any(instance.queues)):
                self.start(instance, now)
                if self.policy == "anticipating" and any(r.state == "waiting" for r in self.requests):
                    self.look = now  # a new end is predicted

    # ---- instances

    def reach(self, r: Request) -> None:
        r.state = "on device"
        self.instances[r.instance].queues[r.unit].append(r)

    def start(self, instance: Instance, now: float) -> None:
        loads, longest = [], 0
        instance.inside = []
        for queue in instance.queues:
            room = self.chunk
            for taken, r in enumerate(list(queue)):
                if room == 0 or taken == self.capacity:
                    break
                part = min(r.left, room)
                if r.passes == 0:
                    r.began = now
                r.passes += 1
                r.left -= part
                room -= part
                longest = max(longest, part)
                instance.inside.append((r, part))
                if r.left == 0:
                    queue.remove(r)
            loads.append(sum(part for r, part in instance.inside if r.unit == len(loads)))
        instance.running, instance.measured, instance.start = True, True, now
        if not any(r.state == "on the way" and r.instance == instance.number for r in self.requests):
            instance.batch = "in" if instance.batch == "on its way" else instance.batch
        instance.until = now + self.seconds(loads, longest)
        instance.fullest, instance.closed = max(loads), ""
        z = self.deviations[(instance.begun * len(self.instances) + instance.number) % len(self.deviations)]
        instance.predicted = now + max(0.0, max(0.0, self.expected(instance.fullest)) * (1.0 + self.error * z))
        instance.begun += 1
        self.passes.append((now, instance.number, instance.until, tuple(loads), longest, len(instance.inside)))

    def end(self, instance: Instance, now: float) -> None:
        for r, part in instance.inside:
            self.computed += part
            if r.left == 0:
                r.state, r.finished = "finished", now
        instance.inside = []
        instance.running, instance.free_since = False, now
        if instance.batch == "in":
            instance.batch = "over"
        instance.answered |= not any(r.state == "on the way" and r.instance == instance.number for r in self.requests)
        if instance.measured and self.window:
            self.measured = [*self.measured, now - instance.start][-self.window :]
            self.mean_pass = sum(self.measured) / len(self.measured)
            self.set_period()
            miss = now - instance.predicted
            self.known = [*self.known, (instance.fullest, now - instance.start, miss)][-self.window :]

    def set_period(self) -> None:
        if self.interval is None and self.healthy:
            period = (self.mean_pass + self.latency) / self.healthy
            if period != self.period:
                self.lattice, self.ticks_of_lattice, self.period = self.next_tick, 0, period

    def uncomputed(self, g: int, d: int) -> int:
        bound = [r for r in self.requests if (r.instance, r.unit) == (g, d) and r.state != "finished"]
        return sum(r.left for r in bound) + sum(part for r, part in self.instances[g].inside if r.unit == d)

    # ---- scheduler

    def arrive(self, r: Request, now: float) -> bool:
        not_begun = [o for o in self.requests if o.state in ("waiting", "on the way", "on device") and o.passes == 0]
        if len(not_begun) >= self.queue_limit:
            r.state = "refused"
            return False
        r.state = "waiting"
        if self.policy in ("pooled", "spacing", "tick", "anticipating"):
            return True
        count = len(self.instances)
        if self.policy == "random":
            g = int(self.uniforms[r.number] * count)
        elif self.policy == "round-robin":
            g, self.turn = self.turn % count, self.turn + 1
        elif self.policy == "jsq":
            here = [sum(o.instance == g and o.state != "finished" for o in self.requests) for g in range(count)]
            g = here.index(min(here))
        else:
            here = [sum(self.uncomputed(g, d) for d in range(self.units)) for g in range(count)]
            g = here.index(min(here))
        self.send([r], self.instances[g], now)
        return False

    def send(self, batch: list[Request], instance: Instance, now: float) -> None:
        order = sorted(batch, key=lambda r: -r.length) if self.allocation == "longest-first" else batch
        for r in order:
            loads = [self.uncomputed(instance.number, d) for d in range(self.units)]
            in_turn = instance.placed % self.units
            instance.placed += 1
            r.unit = in_turn if self.allocation == "round-robin" else loads.index(min(loads))
            r.instance = instance.number
            r.tokens = r.left = r.cost(instance.number, r.unit)
            r.dispatched = now
            r.state = "on the way"
        instance.answered, instance.batch = False, "on its way"
        for r in batch:
            if self.latency == 0:
                self.reach(r)

    def ready(self, instance: Instance) -> bool:
        if self.while_left_over:
            free = instance.batch == "over" and (not instance.running or any(part for _, part in instance.inside))
        else:
            free = not instance.running and instance.answered
        return instance.number < self.healthy and free and min(self.room(instance)) > 0

    def freest(self, ready: list[Instance]) -> list[Instance]:
        return sorted(ready, key=lambda i: (i.running, i.free_since, i.number))

    def room(self, instance: Instance) -> tuple[float, float]:
        """Tokens and requests that the instance could still take for its next pass."""
        tokens = sum(self.uncomputed(instance.number, d) for d in range(self.units))
        return self.units * self.chunk - tokens, self.units * self.capacity - sum(map(len, instance.queues))

    def schedule(self, now: float, came: bool) -> None:
        waiting = [r for r in self.requests if r.state == "waiting"]
        if self.policy == "tick" and self.next_tick == now:
            self.ticks_of_lattice += 1
            if waiting:
                self.ticks_waiting += 1
        while waiting:
            ready = [instance for instance in self.instances if self.ready(instance)]
            ring = sorted(ready, key=lambda i: (i.number - self.target) % max(1, self.healthy))
            at_target = [i for i in ring if i.number == self.target % max(1, self.healthy)]
            empty = [i for i in ring if not any(i.queues) and not i.running]
            if self.policy == "pooled":
                choice = self.freest(ready)
            elif self.idle_bypass and came and empty:
                choice = empty
            elif self.policy == "tick":
                choice = [[], at_target, ring][min(2, self.ticks_waiting)]
                if self.to_the_freest and self.ticks_waiting:
                    choice = self.freest(ready)
            else:
                due = self.last_dispatch + self.period
                choice = [] if now < due else at_target if now < due + self.period else ring
                if self.to_the_freest and now >= due:
                    choice = self.freest(ready)
                later = [time for time in (due, due + self.period) if time > now]
                self.look = min([self.look, *later])
            came = False
            if not choice:
                return
            instance = choice[0]
            g = instance.number
            room, places = self.room(instance)
            batch: list[Request] = []
            while len(batch) < len(waiting) and room > 0 and len(batch) < places:
                batch.append(waiting[len(batch)])
                room -= min(batch[-1].cost(g, d) for d in range(self.units))
            self.send(batch, instance, now)
            waiting = waiting[len(batch) :]
            self.last_dispatch, self.ticks_waiting, self.target = now, 0, g + 1
            self.look = math.inf

    # ---- ahead of the end of a pass

    def expected(self, tokens: int) -> float:
        """Least squares over the known passes; nobody has a negative fixed part, nor less time for more tokens."""
        if not self.known:
            return self.mean_pass
        count = len(self.known)
        xs, ys = [float(x) for x, _, _ in self.known], [y for _, y, _ in self.known]
        spread = count * sum(x * x for x in xs) - sum(xs) * sum(xs)
        slope = 0.0
        if spread > 0:
            slope = (count * sum(x * y for x, y in zip(xs, ys, strict=True)) - sum(xs) * sum(ys)) / spread
            slope = min(max(slope, 0.0), sum(ys) / sum(xs))
        return sum(ys) / count + slope * (tokens - sum(xs) / count)

    def to_come(self, instance: Instance) -> list[float]:
        """Tokens of each unit that no running pass computes."""
        bound = [r for r in self.requests if r.instance == instance.number and r.state != "finished"]
        return [sum(r.left for r in bound if r.unit == d) for d in range(self.units)]

    def sent_for_next(self, instance: Instance) -> int:
        coming = [r for r in self.requests if r.instance == instance.number and r.state == "on the way"]
        return len(coming) + sum(map(len, instance.queues))

    def room_to_come(self, instance: Instance) -> float:
        """Tokens for which the pass to come has room, unit by unit."""
        return sum(max(0, self.chunk - load) for load in self.to_come(instance))

    def send_ahead(self, now: float, came: bool) -> None:
        for instance in self.instances[: self.healthy]:
            instance.closed = "ajar" if came and instance.closed == "full" else instance.closed
        misses = [miss for _, _, miss in self.known]
        squares = math.sqrt(sum(miss * miss for miss in misses) / len(misses)) if misses else 0.0
        margin = max(2.0**-10, self.margin * squares)
        while waiting := [r for r in self.requests if r.state == "waiting"]:
            self.look = math.inf
            due = self.last_start + self.share * self.mean_pass / max(1, self.healthy)
            open_now: list[tuple[float, bool, float, int]] = []
            for g, instance in enumerate(self.instances[: self.healthy]):
                room, sent = self.room_to_come(instance), self.sent_for_next(instance)
                if instance.closed in ("shut", "full") or sent >= self.units * self.capacity or room == 0:
                    continue
                arrives, end = now + self.latency, instance.predicted
                fills = sum(r.length for r in waiting) >= room
                early = (1.5 * margin if fills else margin) + self.latency
                if sent or self.back_to_back:  # it starts by itself
                    if instance.running and instance.start + self.latency > end:  # no batch could be in time
                        opens = now
                    elif instance.running and arrives <= end:
                        opens = end - early
                    elif not instance.running and self.latency == 0:
                        opens = now
                    else:
                        continue
                elif fills:
                    opens = end - early if instance.running else now
                else:
                    opens = (max(end - 2.0**-10, due) if instance.running else due) - self.latency
                start = max(end, arrives) if instance.running else arrives
                if opens <= now and start < math.inf:
                    open_now.append((start, instance.running, instance.free_since, g))
                elif opens > now:
                    self.look = min(self.look, opens)
            if not open_now:
                return
            start, _, _, g = min(open_now)
            instance = self.instances[g]
            self.last_start = max(self.last_start, start)
            filled = instance.closed == "ajar" or sum(r.length for r in waiting) >= self.room_to_come(instance)
            if self.allocation == "backfill":
                costs = [[r.cost(g, d) for d in range(self.units)] for r in waiting]
                lengths = [r.length for r in waiting]
                split = math.inf if instance.closed else self.split
                unit = backfill(self.to_come(instance), lengths, costs, self.chunk, split)
            else:
                unit = self.in_arrival_order(waiting, instance)
            for r, d in zip(waiting, unit, strict=True):
                if d is None:
                    continue
                instance.placed += 1
                instance.answered, instance.batch = False, "on its way"
                r.instance, r.unit, r.dispatched, r.state = g, d, now, "on the way"
                r.tokens = r.left = r.cost(g, d)
                if self.latency == 0:
                    self.reach(r)
            instance.closed = ("full" if filled else "shut") if None in unit else instance.closed
        self.look = math.inf

    def in_arrival_order(self, waiting: list[Request], instance: Instance) -> list[int | None]:
        """The oldest while there is room; units in turn, or the least loaded, for the longest first or not."""
        g, loads, room = instance.number, self.to_come(instance), self.room_to_come(instance)
        places = self.units * self.capacity - self.sent_for_next(instance)
        size = 0
        while size < len(waiting) and room > 0 and size < places:
            room -= min(waiting[size].cost(g, d) for d in range(self.units))
            size += 1
        order = list(range(size))
        if self.allocation == "longest-first":
            order.sort(key=lambda k: -waiting[k].length)
        unit: list[int | None] = [None] * len(waiting)
        for nth, k in enumerate(order):
            in_turn = self.allocation == "round-robin"
            d = (instance.placed + nth) % self.units if in_turn else loads.index(min(loads))
            unit[k] = d
            loads[d] += waiting[k].cost(g, d)
        return unit

    # ---- conservation

    def count(self) -> None:
        """After every moment: no token lost or computed twice, nobody in two places."""
        bound = [r for r in self.requests if r.instance >= 0]
        inside = sum(part for instance in self.instances for _, part in instance.inside)
        assert sum(r.tokens for r in bound) == self.computed + inside + sum(r.left for r in bound)
        queued = [r.number for instance in self.instances for queue in instance.queues for r in queue]
        assert len(queued) == len(set(queued))
        in_pass = {r.number for instance in self.instances for r, _ in instance.inside}
        for r in self.requests:
            here = r.number in queued or r.number in in_pass
            assert here == (r.state == "on device"), (r, queued, in_pass)
