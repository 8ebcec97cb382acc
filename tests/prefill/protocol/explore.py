"""All interleavings of two instances and three requests up to a depth, with faults: a model checker over the pure
`step`.

    cd tests && python -m prefill.protocol.explore --depth 9 --faults 2

A *system* is the scheduler's state, the two engines, the messages on their way, the timers that are set and the true
time. What may happen next: a request comes; a message on its way is delivered, whichever; time goes on to what is due
first, a timer or the end of a pass. As often as there are faults left: a message is lost or doubled; an instance
restarts unnoticed, forgets under its epoch, or dies (not all); all that is on its way to and from an instance is lost;
a timer fires early, or late; a pass is reported as 3,600 s; the clock steps back or forward. With `--checks` also: a
health check takes an instance for dead, and later (no fault) for healthy; a request comes a second time.

Breadth first: each system is reached by a shortest path, and expanded once. Systems that cannot be told apart are one
(`quotient` says what that means and why; `reduced=False` merges only those that differ in the time at which they are
reached, or in what was counted), and what was reached with more faults left, by no more moves, is not expanded again:
all that can happen to the one can happen to the other. Of each system only a digest is kept, and of the last two layers
nothing else. Two things are checked.

Safety
    the monitor watches the first path to each system.
Liveness
    from every system that is reached, once nothing more goes wrong, all requests are served or refused within X (see
    `prefill.protocol.monitor`). What then happens is determined: messages arrive at once and in order, instances
    that were removed and are up are found healthy, requests come now, timers and passes end when they are due. These
    continuations run into each other, so that each is followed only until it meets a system whose time is known.

Not reduced: the order of independent moves. Every message goes to or comes from the one scheduler, so that few moves
commute, and a depth counts moves, so that to leave out an order would leave out systems at the depth that is reached.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from prefill.protocol.monitor import Monitor
from prefill.protocol.quotient import canonical, digest
from prefill.protocol.system import CHUNK, INTERVAL, LATE, PASS, POLLS, SOON, TOKENS, System

from lbopt.prefill.protocol import ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.faults import Engine
from lbopt.prefill.protocol.messages import (
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
    FirstToken,
    HealthCheck,
    IntervalTick,
    Poll,
    PollAnswer,
    PollTick,
    Refuse,
    Send,
    WakeAt,
    Watchdog,
)
from lbopt.prefill.protocol.state import Phase


class Explorer:
    """All that may happen to a scheduler.

    Parameters
    ----------
    scheduler
        The one to check.
    polls
        Whether instances are polled every second pass.
    monitored
        Whether the monitor watches.
    checks
        Whether health checks fail, and requests come a second time.
    reduced
        Whether systems that cannot be told apart are one.
    tokens
        Of the requests, in the order in which they come.
    """

    def __init__(
        self,
        scheduler: TripleCheck,
        polls: bool,
        monitored: bool = True,
        checks: bool = False,
        reduced: bool = True,
        tokens: tuple[int, ...] = TOKENS,
    ) -> None:
        self.scheduler, self.polls, self.monitored, self.checks = scheduler, polls, monitored, checks
        self.reduced, self.tokens = reduced, tokens
        self.remaining: dict[bytes, float] = {}
        self.moved = 0
        self.worst = 0.0
        self.closest = 0.0

    def start(self, faults: int) -> System:
        setting = self.scheduler.setting
        system = System(
            initial_state(setting),
            Monitor(setting, late=math.inf),
            [Engine(CHUNK) for _ in range(setting.num_instances)],
            [math.inf] * setting.num_instances,
            [],
            {POLLS: 2 * PASS} if self.polls else {},
            self.tokens,
            faults=faults,
        )
        self.hear(system, IntervalTick(0.0))
        return system

    def key(self, system: System) -> bytes:
        """The digest of a system, the faults left aside."""
        key = canonical(system, self.scheduler.setting, self.polls) if self.reduced else system.key()
        return digest(key)

    def hear(self, system: System, event) -> None:
        before = system.state
        system.state, actions = self.scheduler.step(before, event)
        if self.monitored:
            system.monitor.after(before, event, system.state, actions, system.now)
        for action in actions:
            match action:
                case Send():
                    engine = system.engines[action.instance]
                    if engine.up:
                        system.net.append(("batch", action.instance, engine.epoch, action))
                case ArmWatchdog():
                    system.timers[action.instance] = max(system.now + SOON, action.deadline - system.skew)
                case WakeAt():
                    system.timers[INTERVAL] = max(system.now + SOON, action.time - system.skew)
                case Poll():
                    system.net.append(("poll", action.instance, 0, action.asked))
                case Deliver() | Refuse():
                    assert action.request not in system.ended, f"request {action.request} ends twice"
                    system.ended |= {action.request}

    def clock(self, system: System) -> float:
        return system.now + system.skew

    # What may happen.

    def arrive(self, system: System) -> None:
        request = system.arrived
        system.arrived += 1
        self.hear(system, Arrival(self.clock(system), request, system.tokens[request]))

    def deliver(self, system: System, message: tuple) -> None:
        system.net.remove(message)
        kind, g, epoch, what = message
        engine = system.engines[g]
        if kind == "event":
            self.hear(system, replace(what, time=self.clock(system)))
        elif engine.up and kind == "poll":
            self.answer(system, g, what)
        elif engine.up and engine.epoch == epoch:
            batch = [(request, system.tokens[request]) for request in what.requests]
            if engine.receive(what.seq, what.fence, what.epoch, batch):
                self.begin(system, g)
            else:
                self.answer(system, g, 0)

    def answer(self, system: System, g: int, asked: int) -> None:
        engine = system.engines[g]
        told = PollAnswer(0.0, g, engine.newest, len(engine.work), engine.epoch, engine.oldest, engine.missing, asked)
        system.net.append(("event", g, 0, told))

    def begin(self, system: System, g: int) -> None:
        if system.engines[g].start() is not None:
            system.ends[g] = system.now + PASS

    def end(self, system: System, g: int, seconds: float = PASS) -> None:
        engine = system.engines[g]
        system.now, system.ends[g] = max(system.now, system.ends[g]), math.inf
        seq = engine.pass_seq
        for work in engine.end():
            system.net.append(("event", g, 0, FirstToken(0.0, g, work.seq, work.request, engine.epoch)))
        ended = EndForward(0.0, g, seq, seconds, engine.remaining(), engine.epoch, engine.oldest, engine.missing)
        system.net.append(("event", g, 0, ended))
        self.begin(system, g)

    def ring(self, system: System, which: int, at: float) -> None:
        del system.timers[which]
        system.now = max(system.now, at)
        now = self.clock(system)
        if which == POLLS:
            system.timers[POLLS] = system.now + 2 * PASS
            self.hear(system, PollTick(now))
        else:
            self.hear(system, IntervalTick(now) if which == INTERVAL else Watchdog(now, which))

    def forget(self, system: System, g: int, kind: str) -> None:
        engine = system.engines[g]
        system.ends[g] = math.inf
        if kind == "lapses":
            engine.forget()
            return
        engine.crash()
        engine.up = kind == "restarts"
        if engine.up:
            self.answer(system, g, 0)

    def due(self, system: System) -> list[tuple[float, str, int]]:
        """What is due first: timers, then passes."""
        coming = [(at, "timer", which) for which, at in system.timers.items()]
        coming += [(at, "pass", g) for g, at in enumerate(system.ends) if at < math.inf]
        first = min((at for at, _, _ in coming), default=math.inf)
        return sorted(
            (one for one in coming if one[0] <= first + 2 * SOON), key=lambda one: (one[1] != "timer", one[2])
        )

    def moves(self, system: System) -> Iterator[tuple[str, tuple, bool]]:
        """All that may happen: the method's name, its arguments, and whether it is a fault."""
        if system.arrived < len(system.tokens):
            yield "arrive", (), False
        for message in dict.fromkeys(system.net):
            yield "deliver", (message,), False
        due = self.due(system)
        for at, kind, which in due:
            yield ("ring", (which, at), False) if kind == "timer" else ("end", (which,), False)
        if self.checks:
            for g in self.removed(system):
                yield "find", (g, True), False
        if not system.faults:
            return
        for message in dict.fromkeys(system.net):
            yield "lose", (message,), True
            if message[0] != "poll":
                yield "double", (message,), True
        alive = [g for g, engine in enumerate(system.engines) if engine.up]
        for g in alive:
            yield "forget", (g, "restarts"), True
            yield "forget", (g, "lapses"), True
            if len(alive) > 1 and len(alive) >= len(system.engines) - 1:
                yield "forget", (g, "dies"), True
            if sum(message[1] == g for message in system.net) > 1:
                yield "cut", (g,), True
        for which, at in system.timers.items():
            if which != POLLS and at > system.now + 2 * SOON:
                yield "ring", (which, system.now), True
                yield "postpone", (which,), True
        for _, kind, which in due:
            if kind == "pass":
                yield "end", (which, 3600.0), True
        for step in (-1.5, 20.0):
            yield "step", (step,), True
        if self.checks:
            for g, at in enumerate(system.state.instances):
                if at.phase is not Phase.REMOVED:
                    yield "find", (g, False), True
            for request in range(system.arrived):
                yield "again", (request,), True

    def removed(self, system: System) -> list[int]:
        """Who is removed, and would be found healthy."""
        instances = zip(system.state.instances, system.engines, strict=True)
        return [g for g, (at, engine) in enumerate(instances) if at.phase is Phase.REMOVED and engine.up]

    def find(self, system: System, g: int, healthy: bool) -> None:
        epoch = system.engines[g].epoch if healthy else 0
        self.hear(system, HealthCheck(self.clock(system), g, healthy, epoch))

    def again(self, system: System, request: int) -> None:
        self.hear(system, Arrival(self.clock(system), request, system.tokens[request]))

    def lose(self, system: System, message: tuple) -> None:
        system.net.remove(message)

    def double(self, system: System, message: tuple) -> None:
        system.net.append(message)

    def cut(self, system: System, g: int) -> None:
        system.net = [message for message in system.net if message[1] != g]

    def postpone(self, system: System, which: int) -> None:
        system.timers[which] += LATE

    def step(self, system: System, step: float) -> None:
        system.skew += step

    def after(self, system: System, name: str, arguments: tuple, fault: bool) -> System:
        new = system.copied()
        new.faults -= fault
        getattr(self, name)(new, *arguments)
        return new

    # Liveness.

    def settles(self, system: System, key: bytes) -> float:
        """Return after how many seconds all requests have ended if nothing more goes wrong.

        Parameters
        ----------
        system, key
            The system, and its digest.
        """
        path: list[tuple[bytes, float]] = []
        began, rest = system.now, self.remaining.get(key)
        if rest is None:
            system = system.copied()
            system.faults = 0
        while rest is None:
            if system.arrived == len(system.ended) == len(system.tokens):
                rest = 0.0
                break
            path.append((key, system.now))
            if system.now - began > 1000 * PASS or len(path) > 5000:
                raise AssertionError(f"requests {set(range(len(system.tokens))) - system.ended} are stranded: {system}")
            if system.net:
                self.deliver(system, system.net[0])
            elif away := self.removed(system):
                self.find(system, away[0], True)
            elif system.arrived < len(system.tokens):
                self.arrive(system)
            else:
                at, kind, which = self.due(system)[0]
                self.ring(system, which, at) if kind == "timer" else self.end(system, which)
            key = self.key(system)
            rest = self.remaining.get(key)
        until = system.now + rest
        for key, now in path:
            self.remaining[key] = until - now
        return until - began

    def check(self, system: System, key: bytes) -> None:
        took = self.settles(system, key)
        batches = [message[3].requests for message in system.net if message[0] == "batch"]
        sizes = [*system.tokens, *(system.tokens[request] for batch in batches for request in batch)]
        sizes += [work.tokens for engine in system.engines for work in engine.work]
        passes = sum(math.ceil(tokens / CHUNK) for tokens in sizes)
        late, system.monitor.late = system.monitor.late, 0.0
        bound = system.monitor.served_within(len(system.tokens), passes, 2 * PASS)
        system.monitor.late = late
        self.worst, self.closest = max(self.worst, took), max(self.closest, took / bound)
        assert took <= bound, f"served after {took:g} s, bound {bound:g} s, {self.scheduler.setting}"


def explore(
    depth: int,
    faults: int,
    scheduler: type[TripleCheck] = TripleCheck,
    polls: bool = False,
    progress: bool = False,
    monitored: bool = True,
    checks: bool = False,
    reduced: bool = True,
    instances: int = 2,
    tokens: tuple[int, ...] = TOKENS,
    visit: Callable[[System, int], None] = lambda system, level: None,
    **setting,
) -> tuple[Counter, Explorer]:
    """Check all systems within `depth` moves of the start; returns the number of systems by depth, and the explorer.

    Parameters
    ----------
    depth, faults
        Moves, and how many of them may be faults.
    scheduler
        The class to check.
    polls
        Whether instances are polled.
    progress
        Whether to print each depth.
    monitored, checks, reduced, tokens
        See `Explorer`.
    instances
        Of the fleet.
    visit
        Called with each system and its depth.
    setting
        Of the protocol.
    """
    setting = ProtocolSetting(instances, **{"window": 3, "watchdog": 3.0, **setting})
    # The quotient does not rotate what a scheduler that sends ahead reckons with.
    reduced = reduced and setting.dispatch == "ready"
    explorer = Explorer(scheduler(setting), polls, monitored, checks, reduced, tokens)
    start = explorer.start(faults)
    # Of each digest: the level at which it was first reached with at least so many faults left, for 0, 1, ...
    seen = {explorer.key(start): bytes(faults + 1)}
    never = bytes([depth + 1]) * (faults + 1)
    layer, began = [start], time.process_time()
    visit(start, 0)

    def children(system: System, level: int) -> Iterator[System]:
        """Those that are not known at this level or above it."""
        for name, arguments, fault in explorer.moves(system):
            explorer.moved += 1
            new = explorer.after(system, name, arguments, fault)
            key = explorer.key(new)
            known = seen.get(key, never)
            if known[new.faults] <= level:
                continue
            seen[key] = bytes(min(at, level) if left <= new.faults else at for left, at in enumerate(known))
            if known is never:
                explorer.check(new, key)
                visit(new, level)
            yield new

    for level in range(1, depth):
        next_layer = []
        while layer:
            for new in children(layer.pop(), level):
                if level < depth - 1:
                    next_layer.append(new)
                else:
                    # The last two layers together, so that neither is kept.
                    for _ in children(new, depth):
                        pass
        layer = next_layer
        if progress:
            print(
                f"depth {level}: {len(seen):,} systems, {time.process_time() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    if depth == 1:
        for _ in children(start, 1):
            pass
    return Counter(levels[0] for levels in seen.values()), explorer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--faults", type=int, default=2)
    parser.add_argument("--polls", action="store_true")
    parser.add_argument("--checks", action="store_true", help="failing health checks, and requests that come twice")
    parser.add_argument("--all", action="store_true", help="also systems that cannot be told apart")
    parser.add_argument("--timer", default="spacing")
    parser.add_argument("--dispatch", default="ready")
    parser.add_argument("--last-token", action="store_true")
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="*", default=TOKENS, help="of each request")
    parser.add_argument("--patience", type=int)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--idle-bypass", action="store_true")
    given = parser.parse_args()
    began = time.process_time()
    count, explorer = explore(
        given.depth,
        given.faults,
        polls=given.polls,
        progress=True,
        checks=given.checks,
        reduced=not given.all,
        instances=given.instances,
        tokens=tuple(given.tokens),
        timer=given.timer,
        dispatch=given.dispatch,
        last_token=given.last_token,
        patience=given.patience,
        batch_tokens=given.batch_tokens,
        idle_bypass=given.idle_bypass,
    )
    spent = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sum(count.values()):,} systems to depth {given.depth} with {given.faults} faults ({count[given.depth]:,} at "
        f"the last), {explorer.moved:,} moves, {spent:.0f} s CPU, {memory:,.0f} MiB; all requests served within "
        f"{explorer.worst:g} s, at most {100 * explorer.closest:.0f} % of the bound"
    )


if __name__ == "__main__":
    main()
